"""Counters of wrong client secrets, by client and by address; losing them lifts all waits."""

from datetime import datetime, timedelta

from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    MetaData,
    String,
    Table,
    and_,
    case,
    select,
)

from domain.cause import AHEAD_MAX, Clock, lies_ahead
from projections.engine.database import Database, from_micros, to_micros
from projections.engine.in_parts import change_in_parts
from projections.engine.inserting import insert_into

FAILURES_MAX = 5  # Wrong secrets of a client from an address within a window, before it must wait.
# The same for all clients from an address, or trying many client ids would avoid the limit.
ADDRESS_FAILURES_MAX = 60
WINDOW = timedelta(minutes=1)


class SqlThrottle:
    """Counts failures in fixed windows: per client and address, and per address."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.metadata = MetaData()
        self._rows = Table(
            "throttle",
            self.metadata,
            Column("subject", String, primary_key=True),
            Column("failures", Integer, nullable=False),
            Column("ends", BigInteger, nullable=False),
        )

    def wait_s(self, subject: str, address: str) -> int:
        """Return how many seconds a client at an address must wait; 0 when it may try now."""
        now, columns = self._clock(), self._rows.c
        limits = {subject: FAILURES_MAX, address: ADDRESS_FAILURES_MAX}
        with self._database.reading() as connection:
            rows = connection.execute(select(self._rows).where(columns.subject.in_(limits))).all()
        full = [row.ends for row in rows if row.failures >= limits[row.subject]]
        return max((_wait_s(ends, now) for ends in full), default=0)

    def failed(self, subject: str, address: str) -> None:
        """Count one failure of a client at an address."""
        now: datetime = self._clock()
        latest = to_micros(now + WINDOW)
        columns, dialect = self._rows.c, self._database.engine.dialect
        bound = to_micros(now + AHEAD_MAX)
        running = and_(columns.ends > to_micros(now), columns.ends <= bound)
        # One statement, so that no failure is lost between reading and writing.
        rows = [
            {"subject": each, "failures": 1, "ends": latest} for each in sorted({subject, address})
        ]
        statement = (
            insert_into(self._rows, dialect)
            .values(rows)
            .on_conflict_do_update(
                index_elements=["subject"],
                set_={
                    "failures": case((running, columns.failures + 1), else_=1),
                    "ends": case((running, columns.ends), else_=latest),
                },
            )
        )
        with self._database.writing() as connection:
            connection.execute(statement)

    def forget_lapsed(self) -> int:
        """Delete windows that are over; return how many."""
        gone, lapsed = self._rows.delete(), self._rows.c.ends <= to_micros(self._clock())
        return change_in_parts(self._database, gone, lapsed, self._rows.c.subject)


def _wait_s(ends: int, now: datetime) -> int:
    """Return the rest of a window; 0 if it has ended."""
    is_running = lies_ahead(from_micros(ends), now)
    return -(-(ends - to_micros(now)) // 1_000_000) if is_running else 0
