"""The database of the read models: short reads, and writes that hold the write lock throughout."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from threading import Semaphore
from typing import Any

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from domain.at_once import may_wait
from projections.engine.hot_reads import Kept, Quick, QuickReads

KEPT_FREE = 2  # Of the connections to a server, for what is hot: an ordinary read may be slow.
KEPT_BY_A_READER = "deleted, but a reader keeps old pages of the file; run it again"

# PostgreSQL takes no writes here, or has ended a session that paused within a transaction: the
# driver counts both among its internal errors.
_REFUSES = {"25006", "25P03"}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Database:
    """One engine. Reads run in autocommit, writes in one transaction each.

    On SQLite a thread keeps the connection that it reads on: borrowing one costs more than most
    reads. On PostgreSQL, where each one is a process of the server, it gives it back.
    """

    def __init__(self, engine: Engine, durable: Engine | None = None) -> None:
        """Use an engine; a crash may lose its commits where there is a `durable` one beside it."""
        self.engine = engine
        self._reading = engine.execution_options(isolation_level="AUTOCOMMIT")
        # SQLite takes the write lock at once: upgrading a read later can fail as busy.
        self._writing = engine.execution_options(sqlite_begin="IMMEDIATE")
        self._durable = (durable or engine).execution_options(sqlite_begin="IMMEDIATE")
        self._keeps = engine.dialect.name == "sqlite"
        self._kept = Kept(self._reading)
        self._quick = QuickReads(engine, self._kept)
        pool: Any = engine.pool
        self._places = Semaphore(max(1, pool.size() - KEPT_FREE))
        self._wait_s = pool.timeout()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend this thread's connection for single statements; each sees the newest commit.

        Read every result to its end: one that is left open would hold on to an old state.
        """
        may_wait()
        if not self._keeps:
            with self._place(), self._reading.connect() as borrowed:
                yield borrowed
            return
        try:
            yield self._kept.connection()
        except BaseException:
            self._kept.close()  # It may be broken, or in the midst of a result.
            raise

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Leave connections to hot reads and to writes, however many slow reads there are."""
        if self._keeps:
            yield
            return
        if not self._places.acquire(timeout=self._wait_s):
            message = "all connections for ordinary reads are in use"
            raise PoolTimeout(message)
        try:
            yield
        finally:
            self._places.release()

    def rows(self, quick: Quick, **values: Any) -> Sequence[Sequence[Any]]:
        """Run a hot read; a driver that fails is asked again as `reading` asks, and raises so."""
        may_wait()
        found = self._quick.rows(quick, values)
        if found is None:
            with self.reading() as connection:
                return connection.execute(quick.statement, values).all()
        return found

    def server_time(self) -> datetime | None:
        """Return what the database server takes the time for; None for a file, which has no clock.

        All processes of an installation share it, whatever machine they run on.
        """
        if self._keeps:
            return None
        with self.reading() as connection:
            told: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
            return told.astimezone(UTC)  # It comes in the zone of the session.

    def wipe(self) -> bool:
        """Leave no copy of what was deleted in SQLite's write-ahead log; False if a reader does."""
        if not self._keeps:
            return True
        with self.reading() as connection:
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()[0][0]
        return not busy

    def close(self) -> None:
        """Close what this thread holds and what nobody does; others close with their threads."""
        self._kept.close()
        self.engine.dispose()
        self._durable.dispose()

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Lend a connection whose statements all see one state; nothing is written."""
        level = {} if self._keeps else {"isolation_level": "REPEATABLE READ"}
        engine = self.engine.execution_options(**level)
        with self._place(), engine.connect() as connection, connection.begin() as transaction:
            with nullcontext() if self._keeps else _taking_its_time(connection):
                yield connection
            transaction.rollback()

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[Connection]:
        """Lend a connection inside a transaction that commits at the end.

        A commit that is `durable` outlives a crash of the database once it has returned.
        """
        may_wait()
        with (self._durable if durable else self._writing).begin() as connection:
            yield connection


@contextmanager
def _taking_its_time(connection: Connection) -> Iterator[None]:
    """Let who reads a whole table on PostgreSQL pause, and wait for it to be sorted."""
    for limit in ("idle_in_transaction_session_timeout", "statement_timeout"):
        connection.exec_driver_sql(f"SET LOCAL {limit} = 0")
    driver: Any = connection.connection.driver_connection
    answer_s, driver.answer_s = driver.answer_s, None
    try:
        yield
    finally:
        driver.answer_s = answer_s


def is_outage(error: Exception) -> bool:
    """Tell whether the database itself is in trouble: locked, full, gone; not a wrong statement."""
    if isinstance(error, PoolTimeout):
        return True
    if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _REFUSES:
        return True
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code is None or code & 0xFF != sqlite3.SQLITE_ERROR


def to_micros(moment: datetime) -> int:
    """Return a moment as microseconds since 1970, the one form of time in read models."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment (UTC) of microseconds since 1970."""
    return _EPOCH + micros * _MICROSECOND
