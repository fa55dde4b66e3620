"""Leases of running idempotent lookups; losing them costs a provider call, never a charge."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    MetaData,
    String,
    Table,
    Uuid,
    or_,
    select,
)
from sqlalchemy.exc import IntegrityError

from app.stores.faults import Faults
from domain.cause import Clock
from projections.database import Database, to_micros
from projections.in_parts import change_in_parts

# No claim lasts so long: one that seems to was made before the clock was set back.
LEASE_MAX = timedelta(minutes=1)


class SqlLeases:
    """One row per running request; a lapsed one is taken over."""

    def __init__(self, database: Database, clock: Clock, faults: Faults) -> None:
        self._database = database
        self._faults = faults
        self._clock = clock
        self.metadata = MetaData()
        self._rows = Table(
            "leases",
            self.metadata,
            Column("key", Uuid, primary_key=True),
            Column("holder", Uuid, nullable=False),
            Column("fingerprint", String, nullable=False),
            Column("until", BigInteger, nullable=False),
        )

    def acquire(self, key: UUID, holder: UUID, fingerprint: str, until: datetime) -> str | None:
        """Claim `key` until a moment; None when claimed, else the holder's fingerprint.

        Where no lease is to be had the log refuses a twin anyway.
        """
        columns = self._rows.c
        row = {"key": key, "holder": holder, "fingerprint": fingerprint, "until": to_micros(until)}
        lapsed = self._rows.delete().where(columns.key == key, self._is_lapsed())
        with self._faults.swallowed("claim"):
            try:
                with self._database.writing() as connection:
                    connection.execute(lapsed)
                    connection.execute(self._rows.insert().values(row))
            except IntegrityError:
                with self._database.reading() as connection:
                    running: str | None = connection.execute(
                        select(columns.fingerprint).where(columns.key == key)
                    ).scalar_one_or_none()
                # Released between the two statements: claim again at the caller's next look.
                return fingerprint if running is None else running
        return None

    def release(self, key: UUID, holder: UUID) -> None:
        """Give one's own claim back; one that cannot be given back lapses by itself."""
        columns = self._rows.c
        mine = self._rows.delete().where(columns.key == key, columns.holder == holder)
        with self._faults.swallowed("give back"), self._database.writing() as connection:
            connection.execute(mine)

    def forget_lapsed(self) -> int:
        """Delete claims that nobody gave back; return how many."""
        gone, lapsed = self._rows.delete(), self._is_lapsed()
        return change_in_parts(self._database, gone, lapsed, self._rows.c.key)

    def _is_lapsed(self) -> ColumnElement[bool]:
        now, until = self._clock(), self._rows.c.until
        return or_(until < to_micros(now), until > to_micros(now + LEASE_MAX))
