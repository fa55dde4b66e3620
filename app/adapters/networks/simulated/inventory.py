"""The tables of the simulator and all that is done on them: eSIMs in stock and endpoints.

A call has its moment, its time-out, and the port's errors.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final, NamedTuple

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
    Update,
    func,
    select,
)
from sqlalchemy.exc import SQLAlchemyError

from app.adapters.networks.simulated.identifiers import Identifiers
from app.adapters.networks.simulated.subscription import Subscription
from domain.cause import Clock
from domain.provider_errors import OutcomeUnknown, Unavailable
from projections.engine.database import Database
from projections.engine.inserting import insert_into

PAGE_ESIMS: Final = 50
CHUNK_ESIMS: Final = 200  # Some milliseconds of work, once for this many creations.

_decode = msgspec.json.Decoder(Subscription).decode

logger = logging.getLogger(__name__)


class Call(NamedTuple):
    """A call under way; everything in it happens at the moment at which it began, by our clock."""

    connection: Connection
    now: datetime
    deadline: datetime


class Calls:
    """Begins calls; a call that the database delays past its time-out has no effect."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    @contextmanager
    def reading(self, timeout_s: float) -> Iterator[Call]:
        """Lend a connection for single statements; every failure becomes Unavailable."""
        now, deadline = self._start_call(timeout_s)
        try:
            with self._database.reading() as connection:
                yield Call(connection, now, deadline)
        except SQLAlchemyError as error:
            raise Unavailable(_trouble(error)) from None
        if self._clock() > deadline:
            raise Unavailable("the simulated network has met its time-out")

    @contextmanager
    def changing(self, timeout_s: float) -> Iterator[Call]:
        """Lend a durable transaction; raises OutcomeUnknown if its commit fails.

        Durable, because the caller's log may soon name what the call has made, and a crash must not
        make this database forget it.
        """
        now, deadline = self._start_call(timeout_s)
        committing = False
        try:
            with self._database.writing(durable=True) as connection:
                yield Call(connection, now, deadline)
                if self._clock() > deadline:
                    raise OutcomeUnknown("the simulated network has met its time-out")
                committing = True
        except SQLAlchemyError as error:
            kind = OutcomeUnknown if committing else Unavailable
            raise kind(_trouble(error)) from None

    def left_s(self, call: Call) -> float:
        return max(0.0, (call.deadline - self._clock()).total_seconds())

    def _start_call(self, timeout_s: float) -> tuple[datetime, datetime]:
        if timeout_s <= 0:
            raise Unavailable("no time is left to ask the simulated network")
        now = self._clock()
        return now, now + timedelta(seconds=timeout_s)


def _trouble(error: SQLAlchemyError) -> str:
    # Only the type, because the text of an unknown error may hold the ICCID in the statement.
    kind = type(error).__name__
    logger.warning("the tables of the simulated network: %s", kind)
    return f"the tables of the simulated network cannot be used: {kind}"


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

    def free_esims(
        self, connection: Connection, sponsor_profile_id: str | None, page: int
    ) -> list[str]:
        """Read one page of free eSIMs, oldest first within a sponsor profile; None: of any."""
        esim = self._esims.c
        free = select(esim.iccid).where(esim.is_free)
        if sponsor_profile_id is not None:
            free = free.where(esim.sponsor_profile_id == sponsor_profile_id)
        free = free.order_by(esim.sponsor_profile_id, esim.serial)
        return [*connection.execute(free.limit(PAGE_ESIMS).offset(page * PAGE_ESIMS)).scalars()]

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
        state = select(self._esims.c.is_free).where(self._esims.c.iccid == iccid)
        return connection.execute(state.with_for_update() if lock else state).scalar_one_or_none()

    def mark(self, connection: Connection, iccid: str, *, is_free: bool) -> None:
        this = self._esims.update().where(self._esims.c.iccid == iccid)
        connection.execute(this.values(is_free=is_free))

    def ever(self, connection: Connection, endpoint_id: str) -> tuple[Subscription | None, bool]:
        """Read an endpoint; if there is none, the bool tells whether it was removed."""
        columns = self._endpoints.c
        found = select(columns.document, columns.is_removed)
        row = connection.execute(found.where(columns.endpoint_id == endpoint_id)).one_or_none()
        if row is None or row.is_removed:
            return None, row is not None
        return _decode(row.document), False

    def by_id(
        self, connection: Connection, endpoint_id: str, *, lock: bool = False
    ) -> Subscription | None:
        return self._present(connection, self._endpoints.c.endpoint_id == endpoint_id, lock=lock)

    def by_iccid(self, connection: Connection, iccid: str) -> Subscription | None:
        return self._present(connection, self._endpoints.c.iccid == iccid)

    def insert(self, connection: Connection, subscription: Subscription) -> None:
        row = {
            "endpoint_id": subscription.endpoint_id,
            "iccid": subscription.iccid,
            "is_removed": False,
            "document": msgspec.json.encode(subscription),
        }
        connection.execute(self._endpoints.insert().values(row))

    def update(self, connection: Connection, subscription: Subscription) -> None:
        new = msgspec.json.encode(subscription)
        connection.execute(self._change(subscription.endpoint_id).values(document=new))

    def remove(self, connection: Connection, endpoint_id: str) -> None:
        """Remove an endpoint; its row stays, so that its reference creates no second one."""
        connection.execute(self._change(endpoint_id).values(is_removed=True))

    def _change(self, endpoint_id: str) -> Update:
        return self._endpoints.update().where(self._endpoints.c.endpoint_id == endpoint_id)

    def _present(
        self, connection: Connection, this: ColumnElement[bool], *, lock: bool = False
    ) -> Subscription | None:
        columns = self._endpoints.c
        found = select(columns.document).where(this, ~columns.is_removed)
        document = connection.execute(
            found.with_for_update() if lock else found
        ).scalar_one_or_none()
        return None if document is None else _decode(document)
