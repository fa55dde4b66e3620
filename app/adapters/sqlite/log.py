"""The log on SQLite, with positions that are never given out twice."""

import sqlite3
from collections.abc import Collection, Sequence
from threading import Lock
from uuid import UUID

from eventsourcing.persistence import OperationalError, StoredEvent
from sqlalchemy import Uuid, bindparam, text

from app.adapters.databases import SqlRecorder, events_of
from app.adapters.sqlite.file import DatabaseFile
from domain.ids import as_id
from domain.log.log import EventsGone, predecessors
from domain.log.signal import digits_of
from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement, ListParameter

# After these errors nothing was committed; an immediate retry would only keep callers waiting.
NOTHING_WRITTEN = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}

# VACUUM may change plain rowids.
CREATE = """
    CREATE TABLE IF NOT EXISTS stored_events (
        rowid INTEGER PRIMARY KEY AUTOINCREMENT, originator_id TEXT NOT NULL,
        originator_version INTEGER NOT NULL, topic TEXT NOT NULL, state BLOB NOT NULL,
        UNIQUE (originator_id, originator_version))
"""
INSERT = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, state) "
    "VALUES (?, ?, ?, ?)"
)
PREDECESSOR = "SELECT 1 FROM stored_events WHERE originator_id = ? AND originator_version = ?"
NEWEST = HotStatement(
    text(
        "SELECT e.originator_id, e.originator_version, e.topic, e.state "
        "FROM json_each(:streams) AS asked JOIN stored_events AS e ON e.originator_id = asked.value"
        " AND e.originator_version = (SELECT max(originator_version) FROM stored_events"
        " WHERE originator_id = asked.value)"
    ).bindparams(bindparam("streams", type_=ListParameter(Uuid())))
)
# AUTOINCREMENT's counter, which a rollback resets but deleting events does not.
GIVEN = HotStatement(text("SELECT seq FROM sqlite_sequence WHERE name = 'stored_events'"))


class SQLiteLogRecorder(SqlRecorder):
    """Inserts under the write lock of the file, so positions have the order of commits."""

    def __init__(self, database: Database, file: DatabaseFile) -> None:
        super().__init__(database, "stored_events", "rowid")
        self._file = file
        self._newest = 0  # The newest position that this process has seen.
        self._lock = Lock()  # Of our threads; SQLite itself lets whoever waits look now and then.

    def create_table(self) -> None:
        with self.translated(), self.database.writing() as connection:
            connection.exec_driver_sql(CREATE)

    def insert_events(self, stored_events: Sequence[StoredEvent]) -> Sequence[int]:
        """Insert under the write lock from the start, so that processes wait their turn for it."""
        if not stored_events:
            return []
        with self.translated(), self._lock:
            self._file.require_lately()
            with self.database.lent() as driver:
                driver.execute("BEGIN IMMEDIATE")
                positions = self._insert(driver, stored_events)
                driver.commit()
            self._file.require()  # It may have been removed before the commit.
            self._newest = max(self._newest, *positions)
        return positions

    def _insert(
        self, driver: sqlite3.Connection, stored_events: Sequence[StoredEvent]
    ) -> Sequence[int]:
        positions = []
        for event in stored_events:
            key = (digits_of(event.originator_id), event.originator_version)
            cursor = driver.execute(INSERT, (*key, event.topic, event.state))
            positions.append(cursor.lastrowid or 0)
        if positions[0] <= self._newest:
            raise self._file.gone()  # An older copy was written into the file.
        # Read only now that the write lock is held: a transaction that reads first may not get it.
        for stream, version in predecessors(stored_events).items():
            if driver.execute(PREDECESSOR, (digits_of(stream), version)).fetchone() is None:
                raise EventsGone
        return positions

    def select_newest(self, streams: Collection[UUID | str]) -> Sequence[StoredEvent]:
        return events_of(self.query(NEWEST, streams=[*map(as_id, streams)]))

    def max_notification_id(self) -> int:
        """Return the newest position; raises OperationalError if the log was set back."""
        found = super().max_notification_id()
        if found < self._newest and self.newest_position_given() < self._newest:
            error = self._file.gone()
            raise OperationalError(error) from error
        self._newest = max(self._newest, found)
        return found

    def newest_position_given(self) -> int:
        rows = self.query(GIVEN)
        return int(rows[0][0]) if rows else 0

    def wake_followers(self) -> None:
        """Do nothing: followers of this process have heard, and others look by themselves."""

    def fault(self) -> None:
        """Ask only whether the log answers: its positions rise by themselves."""
        self.max_notification_id()

    def wrote_nothing(self, error: BaseException) -> bool:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in NOTHING_WRITTEN  # The primary code.
