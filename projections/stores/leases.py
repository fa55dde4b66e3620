"""Leases of running idempotent lookups; losing one costs a provider call, never a charge."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    MetaData,
    String,
    Table,
    Uuid,
    bindparam,
    or_,
    text,
)

from domain.cause import AHEAD_MAX, Clock
from projections.engine.database import Database, to_micros
from projections.engine.hot_reads import HotStatement
from projections.engine.in_parts import change_in_parts
from projections.stores.faults import Faults

# A lease can be replaced if it has lapsed, or if it is our own and the reply to us was lost.
_KEYS = (bindparam("key", type_=Uuid()), bindparam("holder", type_=Uuid()))
_CLAIM = HotStatement(
    text(
        "INSERT INTO leases (key, holder, fingerprint, until)"
        " VALUES (:key, :holder, :fingerprint, :until)"
        " ON CONFLICT (key) DO UPDATE SET holder = excluded.holder,"
        " fingerprint = excluded.fingerprint, until = excluded.until"
        " WHERE leases.holder = excluded.holder"
        " OR leases.until < :now OR leases.until > :latest RETURNING 1"
    ).bindparams(*_KEYS)
)
_RUNNING = HotStatement(
    text("SELECT fingerprint FROM leases WHERE key = :key").bindparams(_KEYS[0])
)
_GIVE_BACK = HotStatement(
    text("DELETE FROM leases WHERE key = :key AND holder = :holder RETURNING 1").bindparams(*_KEYS)
)


class SqlLeases:
    """One row per running request; a lapsed lease is taken over."""

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
        """Claim `key` until a moment; return None when claimed, else the holder's fingerprint.

        If the store fails the result is also None, because the log would refuse a second request.
        """
        with self._faults.swallowed("claim"):
            running = self._claim(key, holder, fingerprint, until)
            if running is not None:
                return running
        return None

    def _claim(self, key: UUID, holder: UUID, fingerprint: str, until: datetime) -> str | None:
        now = self._clock()
        claimed = self._database.rows(
            _CLAIM,
            key=key,
            holder=holder,
            fingerprint=fingerprint,
            until=to_micros(until),
            now=to_micros(now),
            latest=to_micros(now + AHEAD_MAX),
        )
        if claimed:
            return None
        running = self._database.rows(_RUNNING, key=key)
        # Released between the two statements; the caller's next attempt will claim it.
        return running[0][0] if running else fingerprint

    def release(self, key: UUID, holder: UUID) -> None:
        """Release the holder's own lease; if that fails it lapses by itself."""
        with self._faults.swallowed("give back"):
            self._database.rows(_GIVE_BACK, key=key, holder=holder)

    def forget_lapsed(self) -> int:
        """Delete leases that nobody released; return how many."""
        gone, lapsed = self._rows.delete(), self._is_lapsed()
        return change_in_parts(self._database, gone, lapsed, self._rows.c.key)

    def _is_lapsed(self) -> ColumnElement[bool]:
        now, until = self._clock(), self._rows.c.until
        return or_(until < to_micros(now), until > to_micros(now + AHEAD_MAX))
