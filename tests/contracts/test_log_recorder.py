"""Recorders of the log pass the library's own suites, on files as in production."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent

from app.adapters.sqlite.log import SQLiteLogRecorder
from domain.log.log import EventsGone, NothingInserted
from tests.domain.writers import recorder_on


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
def recorder(file: Path) -> Iterator[SQLiteLogRecorder]:
    recorder = recorder_on(file)
    yield recorder
    recorder.close()


def event(version: int = 1) -> StoredEvent:
    return StoredEvent(uuid4(), version, "topic", b"state")


def positions(recorder: SQLiteLogRecorder) -> Sequence[int]:
    return [position for position, *_ in recorder.select_rows(0, 100, frozenset())]


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
    assert recorder.max_notification_id() == max(left, default=0)
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
    again.close()


def test_a_full_disk_is_told_apart_from_an_unknown_outcome(recorder: SQLiteLogRecorder) -> None:
    recorder.insert_events([event()])
    with recorder.database.lent() as connection:
        connection.execute("PRAGMA max_page_count = 1")  # SQLite keeps to what is there.
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
