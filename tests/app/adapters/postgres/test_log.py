"""The log on PostgreSQL keeps the order of its commits, whatever its sequence gives."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent

from app.adapters.postgres.database import PostgresDatabase
from app.adapters.postgres.lock import key_of
from app.adapters.postgres.log import PostgresLogRecorder
from app.adapters.postgres.waker import CHANNEL
from domain.log.log import EventsGone, NothingInserted
from tests.installation import PATIENCE_S, wait_until

TABLE = "log_events"


@pytest.fixture
def recorder(database_url: str) -> Iterator[PostgresLogRecorder]:
    made = recorder_at(database_url)
    made.create_table()
    yield made
    made.close()


def recorder_at(url: str) -> PostgresLogRecorder:
    return PostgresDatabase(url).recorder()


def event(version: int = 1) -> StoredEvent:
    return StoredEvent(uuid4(), version, "topic", b"state")


def test_events_of_one_commit_keep_their_order(recorder: PostgresLogRecorder) -> None:
    events = [event() for _ in range(500)]
    positions = recorder.insert_events(events)
    assert positions == sorted(positions)
    found = recorder.select_rows(0, 500, frozenset())
    assert [stream for _, stream, *_ in found] == [each.originator_id for each in events]


def test_an_event_whose_predecessor_is_missing_is_not_inserted(
    recorder: PostgresLogRecorder,
) -> None:
    first = event()
    second, third = (replace(first, originator_version=version) for version in (2, 3))
    recorder.insert_events([first])
    with pytest.raises(EventsGone):
        recorder.insert_events([event(), third])
    assert recorder.max_notification_id() == 1
    assert recorder.insert_events([second, third]) == [2, 3]  # No position was burnt.


def test_a_conflict_writes_nothing_and_burns_positions_only(recorder: PostgresLogRecorder) -> None:
    first = event()
    assert recorder.insert_events([first]) == [1]
    with pytest.raises(IntegrityError):
        recorder.insert_events([event(), first])
    (position,) = recorder.insert_events([event()])
    assert position > 1
    assert positions_in(recorder) == [1, position]


def test_a_writer_waits_until_an_earlier_one_has_committed(
    recorder: PostgresLogRecorder, database_url: str
) -> None:
    """Or a follower could see position 2 before 1 and never go back."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    new = recorder_at(database_url)  # Which has no connection yet.
    with psycopg.connect(database_url) as earlier, ThreadPoolExecutor(1) as pool:
        earlier.execute("SELECT pg_advisory_xact_lock(%s)", [key_of(f"public.{TABLE}")])
        later = pool.submit(new.insert_events, [event()])
        with psycopg.connect(database_url, autocommit=True) as looking:
            wait_until(lambda: looking.execute(waiting).fetchone() == (1,))
        assert not later.done()
        assert recorder.max_notification_id() == 0
        earlier.commit()
        assert later.result(PATIENCE_S) == [1]
    new.close()


def test_every_commit_is_told_to_who_listens_and_a_conflict_is_not(
    recorder: PostgresLogRecorder, database_url: str
) -> None:
    first = event()
    with psycopg.connect(database_url, autocommit=True) as listening:
        listening.execute(f"LISTEN {CHANNEL}")
        recorder.insert_events([first, event()])
        with pytest.raises(IntegrityError):
            recorder.insert_events([first])
        recorder.insert_events([event()])
        told = list(listening.notifies(timeout=PATIENCE_S, stop_after=2))
        assert [each.channel for each in told] == [CHANNEL] * 2
        assert list(listening.notifies(timeout=0.1)) == []


def test_a_log_that_cannot_be_written_to_says_that_nothing_was(
    recorder: PostgresLogRecorder, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    recorder.close()
    with pytest.raises(NothingInserted):
        recorder.insert_events([event()])


def test_no_events_are_no_call(recorder: PostgresLogRecorder) -> None:
    assert recorder.insert_events([]) == []
    assert recorder.max_notification_id() == 0


def test_an_insert_is_one_statement_that_is_planned_no_more(recorder: PostgresLogRecorder) -> None:
    first = event()
    recorder.insert_events([first])
    for version in range(2, 12):
        recorder.insert_events([replace(first, originator_version=version), event()])
    with pytest.raises(IntegrityError):  # Which costs nobody the session.
        recorder.insert_events([first])
    asked = "SELECT generic_plans, custom_plans FROM pg_prepared_statements"
    with recorder.database.lent() as connection:
        assert connection.execute(asked).fetchall() == [(7, 5)]


def positions_in(recorder: PostgresLogRecorder) -> list[int]:
    return [position for position, *_ in recorder.select_rows(0, 1_000, frozenset())]


def sequence_of(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(statement.format(sequence=f"{TABLE}_notification_id_seq"))


def mend(recorder: PostgresLogRecorder) -> str:
    return (recorder.fault() or "").partition("run: ")[2]


CACHES = "ALTER SEQUENCE {sequence} CACHE 20"


def test_two_sessions_of_a_sequence_that_caches_write_nothing_below_the_head(
    recorder: PostgresLogRecorder, database_url: str
) -> None:
    """Whoever follows is past the head already, and would never see such an event."""
    sequence_of(database_url, CACHES)
    other = recorder_at(database_url)
    writers, followed, refused = [recorder, other], 0, list[str]()
    for turn in range(12):
        try:
            writers[turn % 2].insert_events([event(), event()])
        except NothingInserted as error:
            refused.append(str(error.__cause__))
        seen = [position for position, *_ in recorder.select_rows(followed, 9, frozenset())]
        followed = max(seen, default=followed)
    assert {*refused} == {recorder.fault()}
    assert followed == positions_in(recorder)[-1]
    assert len(positions_in(recorder)) == 2 * (12 - len(refused))
    sequence_of(database_url, mend(recorder))
    assert recorder.fault() is None
    for turn in range(4):  # No session goes on with positions that it has cached.
        writers[turn % 2].insert_events([event()])
    assert positions_in(recorder) == sorted(positions_in(recorder))
    other.close()


@pytest.mark.parametrize("back", [500, 1_000], ids=["behind a gap", "just below the head"])
def test_a_sequence_that_was_set_back_writes_nothing_until_it_is_mended(
    recorder: PostgresLogRecorder, database_url: str, back: int
) -> None:
    first = event()
    recorder.insert_events([first])
    sequence_of(database_url, "SELECT setval('{sequence}', 1000)")
    recorder.insert_events([event(), event()])
    sequence_of(database_url, f"SELECT setval('{{sequence}}', {back})")
    second = replace(first, originator_version=2)
    with pytest.raises(NothingInserted) as refused:
        recorder.insert_events([event(), second])
    assert recorder.fault() == str(refused.value.__cause__)
    assert positions_in(recorder) == [1, 1001, 1002]
    sequence_of(database_url, mend(recorder))
    assert recorder.fault() is None
    assert recorder.insert_events([event(), second]) == [1003, 1004]


def test_a_writer_that_waited_sees_what_was_committed_meanwhile(
    recorder: PostgresLogRecorder, database_url: str
) -> None:
    """Its statement began, with its view of the table, before the other one had committed."""
    sequence_of(database_url, CACHES)
    recorder.insert_events([event()])  # Its session has the positions up to 20 now.
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(database_url) as earlier, ThreadPoolExecutor(1) as pool:
        earlier.execute("SELECT pg_advisory_xact_lock(%s)", [key_of(f"public.{TABLE}")])
        later = pool.submit(recorder.insert_events, [event()])
        with psycopg.connect(database_url, autocommit=True) as looking:
            wait_until(lambda: looking.execute(waiting).fetchone() == (1,))
        earlier.execute(
            f"INSERT INTO {TABLE} (originator_id, originator_version, topic, state) "  # noqa: S608  # Our own name.
            "VALUES (gen_random_uuid(), 1, 'topic', 'state')"
        )
        earlier.commit()
        with pytest.raises(NothingInserted):
            later.result(PATIENCE_S)
    assert positions_in(recorder) == [1, 21]
