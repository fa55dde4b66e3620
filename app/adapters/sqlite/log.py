"""The log on SQLite: the library's recorder, with positions that are never given out twice.

Also the library's connection pool, which lends no connection to a file that was removed or
replaced, and which releases the write lock when it cannot connect.
"""

import sqlite3
from collections.abc import Collection, Sequence
from threading import local
from typing import Any, Self
from uuid import UUID

from eventsourcing.persistence import OperationalError, StoredEvent
from eventsourcing.sqlite import (
    SQLiteApplicationRecorder,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteCursor,
    SQLiteDatastore,
)

from app.adapters.sqlite.file import DatabaseFile
from domain.log.log import EventsGone, LogRow, NothingInserted, predecessors
from domain.log.signal import digits_of


class ReleasingPool(SQLiteConnectionPool):
    """Releases the lock that `get_connection` has taken if it then fails.

    The library (9.5.6) takes the write lock before it connects. If connecting fails, the lock would
    stay taken and no thread could write again.
    """

    def __init__(self, db_name: str, lock_timeout: int | None, pool_timeout: float) -> None:
        super().__init__(db_name=db_name, lock_timeout=lock_timeout, pool_timeout=pool_timeout)
        self._wanted = local()
        self.file = DatabaseFile.named(db_name)

    @classmethod
    def like(cls, pool: SQLiteConnectionPool) -> Self:
        """Return a pool for the same file; the given pool must be unused."""
        assert not pool.num_in_use, "a pool that is in use"
        pool.close()
        return cls(pool.db_name, pool.lock_timeout, pool.pool_timeout)

    def _create_connection(self) -> SQLiteConnection:
        """Open the file so that a commit survives a power cut, however SQLite was built."""
        connection = super()._create_connection()
        connection.cursor().execute("PRAGMA synchronous = FULL")
        connection.cursor().execute("PRAGMA schema_version")
        self.file.opened()
        return connection

    def get_connection(
        self, timeout: float | None = None, *, is_writer: bool | None = None
    ) -> SQLiteConnection:
        self._wanted.is_writer = is_writer
        return super().get_connection(timeout, is_writer=is_writer)

    def _get_connection(self, timeout: float = 0.0) -> SQLiteConnection:
        try:
            self.file.require_lately()
            return super()._get_connection(timeout)
        except sqlite3.Error as error:
            self._give_back()
            raise OperationalError(error) from error
        except BaseException:
            self._give_back()
            raise

    def close(self) -> None:
        """Close connections that are not lent out; a lent one is closed when it comes back.

        The library would also close lent ones while threads read from them, and SQLite would then
        crash the process.
        """
        with self._put_condition:
            self._closed = True
            while self._pool:
                self._pool.popleft().close()

    def put_connection(self, conn: SQLiteConnection) -> None:
        with self._put_condition:
            if not self._closed:
                super().put_connection(conn)
                return
            self._in_use.pop(id(conn), None)
        conn.close()

    def _give_back(self) -> None:
        is_writer, self._wanted.is_writer = self._wanted.is_writer, None
        if is_writer is True:
            self._num_writers -= 1
            self._writer_lock.release()
        elif is_writer is False:
            with self._no_readers:
                self._num_readers -= 1
                self._no_readers.notify()


# After these errors nothing was committed; an immediate retry would only keep callers waiting.
NOTHING_WRITTEN = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


class SQLiteLogRecorder(SQLiteApplicationRecorder):
    """Positions are `INTEGER PRIMARY KEY AUTOINCREMENT`; VACUUM may change plain rowids."""

    def __init__(
        self, datastore: SQLiteDatastore, events_table_name: str = "stored_events"
    ) -> None:
        self._pool = datastore.pool = ReleasingPool.like(datastore.pool)
        self._newest = 0  # The newest position that this process has seen.
        super().__init__(datastore, events_table_name)
        columns = "originator_id, originator_version, topic, state"
        self.insert_events_statement = (
            f"INSERT INTO {events_table_name} ({columns}) VALUES (?, ?, ?, ?)"  # noqa: S608  # Our own name.
        )
        self._predecessor = (
            f"SELECT 1 FROM {events_table_name} "  # noqa: S608  # Our own name.
            "WHERE originator_id = ? AND originator_version = ?"
        )

    def construct_create_table_statements(self) -> list[str]:
        """Name the position column `rowid`, as the library's statements expect."""
        return [
            (
                f"CREATE TABLE IF NOT EXISTS {self.events_table_name} ("
                "rowid INTEGER PRIMARY KEY AUTOINCREMENT, "
                "originator_id TEXT NOT NULL, "
                "originator_version INTEGER NOT NULL, "
                "topic TEXT NOT NULL, "
                "state BLOB NOT NULL, "
                "UNIQUE (originator_id, originator_version))"
            )
        ]

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Insert all events or none; raises NothingInserted if it is certain that none was."""
        try:
            positions = super().insert_events(stored_events, **kwargs)
            self._pool.file.require()  # It may have been removed before the commit.
        except (OperationalError, sqlite3.OperationalError) as error:
            cause = error.__cause__ or error
            code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # The primary error code.
            if code in NOTHING_WRITTEN:
                raise NothingInserted(*error.args) from cause
            raise
        self._newest = max(self._newest, *(positions or [0]))
        return positions

    def max_notification_id(self) -> int:
        """Return the newest position, if any; raises OperationalError if the log was set back."""
        found = super().max_notification_id()
        if (found or 0) < self._newest and self.newest_position_given() < self._newest:
            error = self._pool.file.gone()
            raise OperationalError(error) from error
        self._newest = max(self._newest, found or 0)
        return found

    def select_rows(self, after: int, limit: int, unused: frozenset[str]) -> Sequence[LogRow]:
        marks = ", ".join("?" * len(unused))
        state = f"CASE WHEN topic IN ({marks}) THEN NULL ELSE state END"
        return self._select(state, "rowid > ? ORDER BY rowid LIMIT ?", (*unused, after, limit))

    def select_streams(self, streams: Collection[UUID]) -> Sequence[LogRow]:
        these = f"originator_id IN ({', '.join('?' * len(streams))}) ORDER BY rowid"
        return self._select("state", these, [stream.hex for stream in streams])

    def _select(self, state: str, wanted: str, values: Sequence[object]) -> Sequence[LogRow]:
        columns = f"rowid, originator_id, originator_version, topic, {state}"
        statement = f"SELECT {columns} FROM {self.events_table_name} WHERE {wanted}"  # noqa: S608  # Our own names.
        return self._fetch(statement, values)

    def count_rows(self, after: int, until: int, most: int) -> int:
        statement = (
            f"SELECT count(*) FROM (SELECT 1 FROM {self.events_table_name} "  # noqa: S608  # Our own name.
            "WHERE rowid > ? AND rowid <= ? LIMIT ?)"
        )
        return int(self._fetch(statement, (after, until, most))[0][0])

    def wake_followers(self) -> None:
        """Do nothing: followers of this process have heard, and others look by themselves."""

    def select_newest(self, streams: Collection[UUID]) -> Sequence[StoredEvent]:
        statement = (
            "SELECT originator_version, topic, state "  # noqa: S608  # Our own name.
            f"FROM {self.events_table_name} WHERE originator_id = ? "
            "ORDER BY originator_version DESC LIMIT 1"
        )
        found = []
        with self.datastore.transaction(commit=False) as cursor:
            for stream in streams:
                cursor.execute(statement, [stream.hex])
                found += [StoredEvent(stream, *row) for row in cursor.fetchall()]
        return found

    def newest_position_given(self) -> int:
        """Return AUTOINCREMENT's counter, which a rollback resets but deleting events does not."""
        name = self.events_table_name
        rows = self._fetch("SELECT seq FROM sqlite_sequence WHERE name = ?", (name,))
        return int(rows[0][0]) if rows else 0

    def _fetch(self, statement: str, values: Sequence[object]) -> Sequence[LogRow]:
        with self.datastore.transaction(commit=False) as cursor:
            cursor.execute(statement, values)
            return [*cursor.fetchall()]

    def _insert_events(
        self, c: SQLiteCursor, stored_events: Sequence[StoredEvent], **_: Any
    ) -> Sequence[int]:
        """Insert under the write lock from the start, so that processes wait their turn for it."""
        positions = []
        for event in stored_events:
            key = (digits_of(event.originator_id), event.originator_version)
            c.execute(self.insert_events_statement, (*key, event.topic, event.state))
            positions.append(c.lastrowid)
        if positions and positions[0] <= self._newest:
            raise self._pool.file.gone()  # An older copy was written into the file.
        # Read only now that the write lock is held: a transaction that reads first may not get it.
        for stream, version in predecessors(stored_events).items():
            c.execute(self._predecessor, (digits_of(stream), version))
            if c.fetchone() is None:
                raise EventsGone
        return positions
