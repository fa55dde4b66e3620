"""Recorders of the log pass the library's own suites, on files as in production."""

import sqlite3
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import eventsourcing.cryptography
import pytest
from eventsourcing.persistence import IntegrityError, OperationalError, StoredEvent
from eventsourcing.sqlite import SQLiteDatastore

from app.adapters.sqlite.log import SQLiteLogRecorder
from domain.log.log import EventsGone, NothingInserted

# The suites need a cipher that this service does not; the library ships it twice, and the one they
# import is built on a package that is not installed.
sys.modules.setdefault("eventsourcing.cipher", eventsourcing.cryptography)
from eventsourcing.tests import persistence as suites  # noqa: E402  # After the line above.

LOCK_TIMEOUT_S = 10
PATIENCE_S = 10.0


def recorder_on(file: Path) -> SQLiteLogRecorder:
    recorder = SQLiteLogRecorder(SQLiteDatastore(str(file), lock_timeout=LOCK_TIMEOUT_S))
    recorder.create_table()
    return recorder


class SuiteOnFiles(suites.RecorderTestCase):
    """Gives every test of a suite a file of its own."""

    def setUp(self) -> None:
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._file = Path(folder.name) / "log.sqlite"
        self._threads = set(threading.enumerate())

    def create_recorder(self) -> SQLiteLogRecorder:
        recorder = recorder_on(self._file)
        self.addCleanup(self._close, recorder)
        return recorder

    def _close(self, recorder: SQLiteLogRecorder) -> None:
        """Close after the last reader: the suite tells its readers to stop, but does not wait."""
        for thread in set(threading.enumerate()) - self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        recorder.datastore.close()


class TestApplicationRecorder(SuiteOnFiles, suites.ApplicationRecorderTestCase[SQLiteLogRecorder]):
    """Subscriptions, an optional part of the suite, do not exist on SQLite."""


class TestNonInterleavingPositions(SuiteOnFiles, suites.NonInterleavingNotificationIDsBaseCase):
    """Positions of one commit stand together, so whoever follows never skips a late one."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
def recorder(file: Path) -> Iterator[SQLiteLogRecorder]:
    recorder = recorder_on(file)
    yield recorder
    recorder.datastore.close()


def event(version: int = 1) -> StoredEvent:
    return StoredEvent(uuid4(), version, "topic", b"state")


def positions(recorder: SQLiteLogRecorder) -> Sequence[int | None]:
    return [each.id for each in recorder.select_notifications(None, 100)]


@pytest.mark.parametrize(
    ("written", "done", "left"),
    [
        (3, "DELETE FROM stored_events WHERE rowid >= 2; VACUUM", [1]),
        (2, "DELETE FROM stored_events; VACUUM", []),
        (5, "DELETE FROM stored_events WHERE rowid IN (1, 3); VACUUM", [2, 4, 5]),
        # SQLite takes the larger of its counter and the newest position; PostgreSQL does not.
        (
            5,
            "DELETE FROM stored_events WHERE rowid = 3; UPDATE sqlite_sequence SET seq = 2",
            [1, 2, 4, 5],
        ),
    ],
)
def test_whatever_was_done_to_its_file_a_log_uses_no_position_twice_and_renumbers_nothing(
    recorder: SQLiteLogRecorder, file: Path, written: int, done: str, left: list[int]
) -> None:
    recorder.insert_events([event() for _ in range(written)])
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.executescript(done)
    assert positions(recorder) == left
    assert recorder.max_notification_id() == max(left, default=None)
    assert recorder.insert_events([event()]) == [written + 1]
    assert positions(recorder) == [*left, written + 1]


def test_a_conflict_uses_up_no_position_that_anybody_saw(recorder: SQLiteLogRecorder) -> None:
    first = event()
    recorder.insert_events([first])
    with pytest.raises(IntegrityError):
        recorder.insert_events([event(), first])
    assert positions(recorder) == [1]
    assert recorder.insert_events([event()]) == [recorder.max_notification_id()]
    assert len(positions(recorder)) == 2


def test_a_table_that_exists_is_kept(recorder: SQLiteLogRecorder, file: Path) -> None:
    recorder.insert_events([event()])
    again = recorder_on(file)
    assert positions(again) == [1]
    again.datastore.close()


def test_a_log_that_ran_out_of_connections_writes_again(recorder: SQLiteLogRecorder) -> None:
    pool = recorder.datastore.pool
    pool.pool_timeout = 0.05
    readers = [
        pool.get_connection(is_writer=False) for _ in range(pool.pool_size + pool.max_overflow)
    ]
    with pytest.raises(OperationalError):
        recorder.insert_events([event()])
    for reader in readers:
        pool.put_connection(reader)
    assert recorder.insert_events([event()]) == [1]


def test_a_log_whose_file_could_not_be_opened_for_a_moment_writes_again(
    recorder: SQLiteLogRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = recorder.datastore.pool
    pool.pool_timeout = 0.05
    reader = pool.get_connection(is_writer=False)  # The one connection there is.
    with monkeypatch.context() as patch:
        patch.setattr(pool, "db_name", "/nowhere/log.sqlite")
        with pytest.raises(Exception, match="unable to open"):
            recorder.insert_events([event()])
    assert recorder.insert_events([event()]) == [1]
    pool.put_connection(reader)


def test_closing_a_log_leaves_a_connection_in_use_to_its_user(recorder: SQLiteLogRecorder) -> None:
    # SQLite itself crashes the process when one thread closes what another is reading from.
    recorder.insert_events([event()])
    with recorder.datastore.transaction(commit=False) as cursor:
        cursor.execute("SELECT topic FROM stored_events")
        recorder.datastore.close()
        assert [row["topic"] for row in cursor.fetchall()] == ["topic"]


def test_a_full_disk_is_told_apart_from_an_unknown_outcome(recorder: SQLiteLogRecorder) -> None:
    recorder.insert_events([event()])
    pool = recorder.datastore.pool
    connection = pool.get_connection(is_writer=False)
    connection.cursor().execute("PRAGMA max_page_count = 1")  # SQLite keeps to what is there.
    pool.put_connection(connection)
    large = [replace(event(), state=b"x" * 100_000)]
    with pytest.raises(NothingInserted):
        recorder.insert_events(large)
    assert positions(recorder) == [1]


def test_an_event_whose_predecessor_is_missing_is_not_inserted(recorder: SQLiteLogRecorder) -> None:
    first = event()
    third = replace(first, originator_version=3)
    recorder.insert_events([first])
    with pytest.raises(EventsGone):
        recorder.insert_events([event(), third])
    assert recorder.insert_events([replace(first, originator_version=2), third]) == [2, 3]
