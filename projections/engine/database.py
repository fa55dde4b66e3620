"""The database of the read models: short reads, and writes that hold the write lock throughout."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from threading import Semaphore
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, overload

from sqlalchemy import Connection, Engine, Executable, func, select
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from domain.blocking import may_block
from domain.errors import ServiceUnavailable
from projections.engine.hot_reads import HotStatement, execute

T = TypeVar("T")
P = ParamSpec("P")

# Connections that are left to hot reads and writes, since ordinary reads may be slow.
FREE_MIN = 2
READER_BUSY = (
    "deleted, but another process still reads the database; run this again when it has finished"
)

# PostgreSQL is read-only here, or has ended a session that paused within a transaction. The driver
# reports both as internal errors.
_REFUSES = {"25006", "25P03"}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Database:
    """One engine. Reads run in autocommit, writes in one transaction each."""

    def __init__(
        self,
        engine: Engine,
        durable: Engine | None = None,
        require: Callable[[], object] = lambda: None,
    ) -> None:
        """Use `engine`; if a `durable` one is given, a crash may lose what `engine` commits.

        `require` is called before each use, and raises when the database must not be used.
        """
        self.engine = engine
        self._require = require
        self._is_sqlite = engine.dialect.name == "sqlite"  # Whose driver begins nothing by itself.
        apart = {"sqlite_begin": ""} if self._is_sqlite else {"isolation_level": "AUTOCOMMIT"}
        self._reading = engine.execution_options(**apart)
        # SQLite takes the write lock at once, because upgrading a read lock later can fail as busy.
        self._writing = engine.execution_options(sqlite_begin="IMMEDIATE")
        self._durable = (durable or engine).execution_options(sqlite_begin="IMMEDIATE")
        pool: Any = engine.pool
        self._wait_s = pool.timeout()
        self._lent = getattr(pool, "lent", self._borrow)  # Both lend in autocommit.
        self._slots = Semaphore(max(1, pool.size() - FREE_MIN))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend a connection for single statements; each sees the newest commit.

        Read every result to its end: an open result would keep reading an old state.
        """
        may_block()
        self._require()
        with self._slot(), self._reading.connect() as borrowed:
            yield borrowed

    @contextmanager
    def _slot(self) -> Iterator[None]:
        """Limit the ordinary reads at once, so that hot reads and writes find a connection."""
        if not self._slots.acquire(timeout=self._wait_s):
            raise PoolTimeout("all connections for ordinary reads are in use")
        try:
            yield
        finally:
            self._slots.release()

    @contextmanager
    def _borrow(self) -> Iterator[Any]:
        """Lend a bare connection of the driver; it is dropped when the block raises."""
        borrowed = self.engine.raw_connection()
        try:
            yield borrowed.driver_connection
        except BaseException:
            borrowed.invalidate()  # It may be broken, or a result may be half read.
            raise
        finally:
            borrowed.close()

    def read(
        self, query: Callable[Concatenate[Connection, P], T], *arguments: P.args, **more: P.kwargs
    ) -> T:
        """Run one query of a read model, which is given a connection first."""
        with self.reading() as connection:
            return query(connection, *arguments, **more)

    def all(self, statement: Executable, values: Mapping[str, Any] = {}) -> Sequence[Any]:
        with self.reading() as connection:
            return connection.execute(statement, values).all()

    def write(
        self, change: Callable[Concatenate[Connection, P], T], *arguments: P.args, **more: P.kwargs
    ) -> T:
        """Run what changes rows, which is given a connection first, in a transaction of its own."""
        with self.writing() as connection:
            return change(connection, *arguments, **more)

    def change(self, statement: Executable, *, durable: bool = False) -> int:
        """Run one statement in a transaction of its own; return how many rows it has changed."""
        with self.writing(durable=durable) as connection:
            return connection.execute(statement).rowcount

    def rows(self, hot: HotStatement, **values: Any) -> Sequence[Sequence[Any]]:
        """Run a hot read. If the driver fails, run it again through `reading`."""
        may_block()
        self._require()
        dialect = self.engine.dialect
        with suppress(dialect.loaded_dbapi.Error), self._lent() as driver:
            found: Sequence[Sequence[Any]] = execute(driver, dialect, hot, values).fetchall()
            return found
        return self.all(hot.statement, values)

    def server_time(self) -> datetime | None:
        """Return the time of the database server; None for SQLite, which has no clock of its own.

        All processes of an installation share this clock, whatever machine they run on.
        """
        if self._is_sqlite:
            return None
        ((now,),) = self.all(select(func.clock_timestamp()))
        return cast("datetime", now).astimezone(UTC)  # It comes in the time zone of the session.

    def waits_for_standby(self) -> bool:
        """Tell whether a commit that anybody can see is also on a standby of PostgreSQL."""
        if self._is_sqlite:
            return False
        ((named,),) = self.all(select(func.current_setting("synchronous_standby_names")))
        return bool(named)

    def wipe(self) -> bool:
        """Remove deleted data from SQLite's write-ahead log; False if a reader prevents it."""
        if not self._is_sqlite:
            return True
        with self.reading() as connection:
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()[0][0]
        return not busy

    def close(self) -> None:
        """Close the idle connections; the others close when they are given back."""
        self.engine.dispose()
        self._durable.dispose()

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Lend a connection whose statements all see the same state; nothing is written."""
        self._require()
        level = {} if self._is_sqlite else {"isolation_level": "REPEATABLE READ"}
        engine = self.engine.execution_options(**level)
        with self._slot(), engine.connect() as connection, connection.begin() as transaction:
            with nullcontext() if self._is_sqlite else _untimed(connection):
                yield connection
            transaction.rollback()

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[Connection]:
        """Lend a connection inside a transaction that commits at the end.

        A `durable` commit survives a crash of the database once it has returned.
        """
        may_block()
        self._require()
        with (self._durable if durable else self._writing).begin() as connection:
            yield connection


@contextmanager
def _untimed(connection: Connection) -> Iterator[None]:
    """Lift the time limits of PostgreSQL for a reader of whole tables, which may sort and pause."""
    for limit in ("idle_in_transaction_session_timeout", "statement_timeout"):
        connection.exec_driver_sql(f"SET LOCAL {limit} = 0")
    driver: Any = connection.connection.driver_connection
    answer_s, driver.answer_s = driver.answer_s, None
    try:
        yield
    finally:
        driver.answer_s = answer_s


def is_outage(error: Exception) -> bool:
    """Tell whether the database itself is in trouble (locked, full, gone), not the statement."""
    if isinstance(error, PoolTimeout | ServiceUnavailable):  # The second of the keys' database.
        return True
    if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _REFUSES:
        return True
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code is None or code & 0xFF != sqlite3.SQLITE_ERROR


def to_micros(moment: datetime) -> int:
    """Return a moment as microseconds since 1970; read models store every time in this form."""
    return (moment - _EPOCH) // _MICROSECOND


@overload
def from_micros(micros: int) -> datetime: ...
@overload
def from_micros(micros: int | None) -> datetime | None: ...
def from_micros(micros: int | None) -> datetime | None:
    """Return the moment (UTC) of microseconds since 1970; None if there is none."""
    return None if micros is None else _EPOCH + micros * _MICROSECOND
