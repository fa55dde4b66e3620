"""The database of the read models: short reads, and writes that hold the write lock throughout."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, Engine

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Database:
    """One engine. Reads run in autocommit, writes in one transaction each."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._reading = engine.execution_options(isolation_level="AUTOCOMMIT")
        # SQLite takes the write lock at once: upgrading a read later can fail as busy.
        self._writing = engine.execution_options(sqlite_begin="IMMEDIATE")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend a connection for single statements; each sees the newest commit."""
        with self._reading.connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Lend a connection whose statements all see one state; nothing is written."""
        with self.engine.connect() as connection, connection.begin() as transaction:
            yield connection
            transaction.rollback()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Lend a connection inside a transaction that commits at the end."""
        with self._writing.begin() as connection:
            yield connection


def to_micros(moment: datetime) -> int:
    """Return a moment as microseconds since 1970, the one form of time in read models."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment (UTC) of microseconds since 1970."""
    return _EPOCH + micros * _MICROSECOND
