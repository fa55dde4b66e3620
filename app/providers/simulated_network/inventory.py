"""The tables of the simulator, and every statement: eSIMs in stock, and the endpoints of them."""

from typing import Final

import msgspec
from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    and_,
    func,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from app.providers.simulated_network.identifiers import Identifiers
from app.providers.simulated_network.subscription import Subscription
from domain.network import AvailableEsim

PAGE_ESIMS: Final = 50
CHUNK_ESIMS: Final = 200  # Some milliseconds of work, once for so many creations.

_decode = msgspec.json.Decoder(Subscription).decode


class Inventory:
    """One row per eSIM ever made and one per endpoint; an eSIM is free, in use, or was used.

    Statements run on the caller's connection. On PostgreSQL whoever reads in order to change locks
    the row; on SQLite a transaction that writes is alone anyway.
    """

    def __init__(self, identifiers: Identifiers) -> None:
        self._identifiers = identifiers
        self.metadata = MetaData()
        self._esims = Table(
            "simulated_esims",
            self.metadata,
            Column("iccid", String, primary_key=True),
            Column("sponsor_profile_id", String, nullable=False),  # "" runs on none.
            Column("serial", Integer, nullable=False),
            Column("is_free", Boolean, nullable=False),
            Index("simulated_esims_made", "sponsor_profile_id", "serial", unique=True),
            Index("simulated_esims_free", "is_free", "sponsor_profile_id", "serial"),
        )
        self._endpoints = Table(
            "simulated_endpoints",
            self.metadata,
            Column("endpoint_id", String, primary_key=True),
            Column("iccid", String, nullable=False),
            Column("is_removed", Boolean, nullable=False),
            Column("document", LargeBinary, nullable=False),
            Index("simulated_endpoints_by_iccid", "iccid"),
        )

    def free_esims(
        self, connection: Connection, sponsor_profile_id: str | None, page: int
    ) -> list[AvailableEsim]:
        """Read one page of free eSIMs, oldest first within a sponsor profile; None for any."""
        columns = self._esims.c
        statement = (
            select(columns.iccid, columns.sponsor_profile_id)
            .where(self._is_free(sponsor_profile_id))
            .order_by(columns.sponsor_profile_id, columns.serial)
            .limit(PAGE_ESIMS)
            .offset(page * PAGE_ESIMS)
        )
        rows = connection.execute(statement).all()
        return [AvailableEsim(row.iccid, row.sponsor_profile_id or None) for row in rows]

    def fill(self, connection: Connection, sponsor_profile_id: str | None, wanted: int) -> None:
        """Make eSIMs, unless so many are free; two who do it at once make the same."""
        columns, sponsor = self._esims.c, sponsor_profile_id or ""
        free = select(func.count()).where(self._is_free(sponsor_profile_id))
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
        dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
        # An ICCID that another sponsor profile came to first is left out.
        connection.execute(dialect.insert(self._esims).on_conflict_do_nothing(), rows)

    def is_free(self, connection: Connection, iccid: str, *, lock: bool = False) -> bool | None:
        """Tell whether an eSIM is free; None for one that was never made."""
        columns = self._esims.c
        statement = select(columns.is_free).where(columns.iccid == iccid)
        found: bool | None = connection.execute(
            statement.with_for_update() if lock else statement
        ).scalar_one_or_none()
        return found

    def mark(self, connection: Connection, iccid: str, *, is_free: bool) -> None:
        """Take an eSIM out of the stock or put it back."""
        mine = self._esims.c.iccid == iccid
        connection.execute(self._esims.update().where(mine).values(is_free=is_free))

    def ever(self, connection: Connection, endpoint_id: str) -> tuple[Subscription | None, bool]:
        """Read an endpoint; None for one that was removed, or never was: the bool tells which."""
        columns = self._endpoints.c
        row = connection.execute(
            select(columns.document, columns.is_removed).where(columns.endpoint_id == endpoint_id)
        ).one_or_none()
        if row is None or row.is_removed:
            return None, row is not None
        return _decode(row.document), False

    def by_id(
        self, connection: Connection, endpoint_id: str, *, lock: bool = False
    ) -> Subscription | None:
        """Read the endpoint of an id, unless it was removed."""
        return self._one(connection, self._endpoints.c.endpoint_id == endpoint_id, lock=lock)

    def by_iccid(self, connection: Connection, iccid: str) -> Subscription | None:
        """Read the endpoint that an eSIM has, if any."""
        return self._one(connection, self._endpoints.c.iccid == iccid, lock=False)

    def insert(self, connection: Connection, subscription: Subscription) -> None:
        """Write a new endpoint."""
        row = {
            "endpoint_id": subscription.endpoint_id,
            "iccid": subscription.iccid,
            "is_removed": False,
            "document": msgspec.json.encode(subscription),
        }
        connection.execute(self._endpoints.insert().values(row))

    def update(self, connection: Connection, subscription: Subscription) -> None:
        """Write what has become of an endpoint."""
        mine = self._endpoints.c.endpoint_id == subscription.endpoint_id
        document = msgspec.json.encode(subscription)
        connection.execute(self._endpoints.update().where(mine).values(document=document))

    def remove(self, connection: Connection, endpoint_id: str) -> None:
        """End an endpoint; its row is kept, so that its reference makes no second one."""
        mine = self._endpoints.c.endpoint_id == endpoint_id
        connection.execute(self._endpoints.update().where(mine).values(is_removed=True))

    def _is_free(self, sponsor_profile_id: str | None) -> ColumnElement[bool]:
        columns = self._esims.c
        if sponsor_profile_id is None:
            return columns.is_free
        return and_(columns.is_free, columns.sponsor_profile_id == sponsor_profile_id)

    def _one(
        self, connection: Connection, condition: ColumnElement[bool], *, lock: bool
    ) -> Subscription | None:
        columns = self._endpoints.c
        statement = select(columns.document).where(condition, ~columns.is_removed)
        if lock:
            statement = statement.with_for_update()
        document = connection.execute(statement).scalar_one_or_none()
        return None if document is None else _decode(document)
