"""Counters of wrong client secrets, per client id and address together; losing them resets them."""

from datetime import datetime, timedelta

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    and_,
    case,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from domain.cause import Clock
from projections.database import Database, to_micros
from projections.in_parts import change_in_parts

FAILURES_MAX = 5  # Wrong secrets in a window before a caller has to wait.
WINDOW = timedelta(minutes=1)


class SqlThrottle:
    """Counts failures of a subject in fixed windows."""

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

    def wait_s(self, subject: str) -> int:
        """How many seconds a subject has to wait; 0 when it may try now."""
        now = self._clock()
        with self._database.reading() as connection:
            failures, ends = self._read(connection, subject)
        if failures < FAILURES_MAX or not _is_running(ends, now):
            return 0
        return -(-(ends - to_micros(now)) // 1_000_000)

    def failed(self, subject: str) -> None:
        """Count one failure."""
        now: datetime = self._clock()
        latest = to_micros(now + WINDOW)
        columns, dialect = self._rows.c, self._database.engine.dialect.name
        insert = (postgresql if dialect == "postgresql" else sqlite).insert(self._rows)
        running = and_(columns.ends > to_micros(now), columns.ends <= latest)
        # One statement, so that no failure is lost between reading and writing.
        statement = insert.values(subject=subject, failures=1, ends=latest).on_conflict_do_update(
            index_elements=["subject"],
            set_={
                "failures": case((running, columns.failures + 1), else_=1),
                "ends": case((running, columns.ends), else_=latest),
            },
        )
        with self._database.writing() as connection:
            connection.execute(statement)

    def forget_lapsed(self) -> int:
        """Delete windows that are over; return how many."""
        gone, lapsed = self._rows.delete(), self._rows.c.ends <= to_micros(self._clock())
        return change_in_parts(self._database, gone, lapsed, self._rows.c.subject)

    def _read(self, connection: Connection, subject: str) -> tuple[int, int]:
        statement = select(self._rows.c.failures, self._rows.c.ends).where(
            self._rows.c.subject == subject
        )
        row = connection.execute(statement).one_or_none()
        return (row.failures, row.ends) if row else (0, 0)


def _is_running(ends: int, now: datetime) -> bool:
    """Tell whether a window is open; one that ends too late began before a clock was set back."""
    return to_micros(now) < ends <= to_micros(now + WINDOW)
