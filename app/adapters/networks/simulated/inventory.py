"""The tables of the simulator and all statements on them: eSIMs in stock and endpoints."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    bindparam,
    func,
    select,
)

from app.adapters.networks.simulated.identifiers import Identifiers
from app.adapters.networks.simulated.subscription import Subscription
from domain.links.network import AvailableEsim
from projections.engine.hot_reads import HotStatement, run
from projections.engine.inserting import insert_into, insert_many

PAGE_ESIMS: Final = 50
CHUNK_ESIMS: Final = 200  # Some milliseconds of work, once for this many creations.

_decode = msgspec.json.Decoder(Subscription).decode


class Inventory:
    """One row per eSIM ever made and one per endpoint; an eSIM is free, in use, or was used.

    Statements run on the caller's connection. On PostgreSQL a row that is read in order to be
    changed is locked; on SQLite there is only one writer at a time anyway.
    """

    def __init__(self, identifiers: Identifiers, name: str) -> None:
        self._identifiers = identifiers
        self.metadata = MetaData()
        self._esims = Table(
            f"{name}_esims",
            self.metadata,
            Column("iccid", String, primary_key=True),
            Column("sponsor_profile_id", String, nullable=False),  # "": runs on no profile.
            Column("serial", Integer, nullable=False),
            Column("is_free", Boolean, nullable=False),
            Index(f"{name}_esims_made", "sponsor_profile_id", "serial", unique=True),
            Index(f"{name}_esims_free", "is_free", "sponsor_profile_id", "serial"),
        )
        self._endpoints = Table(
            f"{name}_endpoints",
            self.metadata,
            Column("endpoint_id", String, primary_key=True),
            Column("iccid", String, nullable=False),
            Column("is_removed", Boolean, nullable=False),
            Column("document", LargeBinary, nullable=False),
            Index(f"{name}_endpoints_by_iccid", "iccid"),
        )

        self._build_esims()
        self._build_endpoints()

    def _build_esims(self) -> None:
        """Build the statements about eSIMs once; building one costs more than running it."""
        esim = self._esims.c
        free = select(esim.iccid, esim.sponsor_profile_id).where(esim.is_free)
        free = free.order_by(esim.sponsor_profile_id, esim.serial)
        page = free.limit(bindparam("most")).offset(bindparam("first"))
        self._free = HotStatement(page)
        self._free_of_sponsor = HotStatement(
            page.where(esim.sponsor_profile_id == bindparam("sponsor"))
        )
        mine = esim.iccid == bindparam("esim")
        state = select(esim.is_free).where(mine)
        self._state, self._state_locked = HotStatement(state), HotStatement(state.with_for_update())
        self._mark = HotStatement(
            self._esims.update().where(mine).values(is_free=bindparam("free"))
        )

    def _build_endpoints(self) -> None:
        """Build the statements about endpoints once, for the same reason."""
        columns = self._endpoints.c
        mine = columns.endpoint_id == bindparam("endpoint")
        present = select(columns.document).where(~columns.is_removed)
        by_id = present.where(mine)
        self._by_id, self._by_id_locked = HotStatement(by_id), HotStatement(by_id.with_for_update())
        self._by_iccid = HotStatement(present.where(columns.iccid == bindparam("esim")))
        self._ever = HotStatement(select(columns.document, columns.is_removed).where(mine))
        change = self._endpoints.update().where(mine)
        self._update = HotStatement(change.values(document=bindparam("new")))
        self._remove = HotStatement(change.values(is_removed=True))

    def free_esims(
        self, connection: Connection, sponsor_profile_id: str | None, page: int
    ) -> list[AvailableEsim]:
        """Read one page of free eSIMs, oldest first within a sponsor profile; None: of any."""
        statement = self._free if sponsor_profile_id is None else self._free_of_sponsor
        span = {"most": PAGE_ESIMS, "first": page * PAGE_ESIMS}
        rows = run(connection, statement, sponsor=sponsor_profile_id, **span)
        return [AvailableEsim(iccid, sponsor or None) for iccid, sponsor in rows]

    def fill(self, connection: Connection, sponsor_profile_id: str | None, wanted: int) -> None:
        """Make eSIMs until `wanted` are free; two processes at once make the same eSIMs."""
        columns, sponsor = self._esims.c, sponsor_profile_id or ""
        free = select(func.count()).where(columns.is_free)
        if sponsor_profile_id is not None:
            free = free.where(columns.sponsor_profile_id == sponsor_profile_id)
        missing = wanted - connection.execute(free).scalar_one()
        if missing <= 0:
            return
        newest = connection.execute(
            select(func.max(columns.serial)).where(columns.sponsor_profile_id == sponsor)
        ).scalar_one()
        first = (newest or 0) + 1
        rows = [
            {
                "iccid": self._identifiers.iccid(sponsor, serial),
                "sponsor_profile_id": sponsor,
                "serial": serial,
                "is_free": True,
            }
            for serial in range(first, first + max(CHUNK_ESIMS, missing))
        ]
        # An ICCID that another sponsor profile has taken is left out.
        connection.execute(
            insert_into(self._esims, connection.dialect).on_conflict_do_nothing(), rows
        )

    def is_free(self, connection: Connection, iccid: str, *, lock: bool = False) -> bool | None:
        """Tell whether an eSIM is free; None if it was never made."""
        statement = self._state_locked if lock else self._state
        row = _row(run(connection, statement, esim=iccid))
        return None if row is None else bool(row[0])

    def mark(self, connection: Connection, iccid: str, *, is_free: bool) -> None:
        """Take an eSIM out of the stock or put it back."""
        run(connection, self._mark, esim=iccid, free=is_free)

    def ever(self, connection: Connection, endpoint_id: str) -> tuple[Subscription | None, bool]:
        """Read an endpoint; if there is none, the bool tells whether it was removed."""
        row = _row(run(connection, self._ever, endpoint=endpoint_id))
        if row is None or row[1]:
            return None, row is not None
        return _decode(row[0]), False

    def by_id(
        self, connection: Connection, endpoint_id: str, *, lock: bool = False
    ) -> Subscription | None:
        """Read an endpoint by its id, unless it was removed."""
        statement = self._by_id_locked if lock else self._by_id
        return _one(run(connection, statement, endpoint=endpoint_id))

    def by_iccid(self, connection: Connection, iccid: str) -> Subscription | None:
        """Read the endpoint of an eSIM, if it has one."""
        return _one(run(connection, self._by_iccid, esim=iccid))

    def insert(self, connection: Connection, subscription: Subscription) -> None:
        row = {
            "endpoint_id": subscription.endpoint_id,
            "iccid": subscription.iccid,
            "is_removed": False,
            "document": msgspec.json.encode(subscription),
        }
        insert_many(connection, self._endpoints, [row])

    def update(self, connection: Connection, subscription: Subscription) -> None:
        """Write the new state of an endpoint."""
        new = msgspec.json.encode(subscription)
        run(connection, self._update, endpoint=subscription.endpoint_id, new=new)

    def remove(self, connection: Connection, endpoint_id: str) -> None:
        """Remove an endpoint; its row stays, so that its reference creates no second one."""
        run(connection, self._remove, endpoint=endpoint_id)


def _one(found: Any) -> Subscription | None:
    row = _row(found)
    return None if row is None else _decode(row[0])


def _row(found: Any) -> Sequence[Any] | None:
    rows = found.fetchall()  # All rows, because an open result would keep its old snapshot.
    assert len(rows) <= 1, "a key names one row"
    return rows[0] if rows else None
