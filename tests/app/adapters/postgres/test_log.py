"""The log on PostgreSQL passes the library's own suites, and keeps the order of its commits."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import eventsourcing.cryptography
import psycopg
import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent

from app.adapters.postgres.database import conninfo
from app.adapters.postgres.lock import key_of
from app.adapters.postgres.log import Datastore, PostgresLogRecorder
from app.adapters.postgres.waker import CHANNEL
from domain.log.log import EventsGone, NothingInserted
from tests.installation import PATIENCE_S, wait_until

# The suites need a cipher that this service does not; the library ships it twice, and the one they
# import is built on a package that is not installed.
sys.modules.setdefault("eventsourcing.cipher", eventsourcing.cryptography)
from eventsourcing.tests import persistence as suites  # noqa: E402  # After the line above.

TABLE = "log_events"


class SuiteOnDatabases(suites.RecorderTestCase):
    """Gives every test of a suite a database of its own."""

    @pytest.fixture(autouse=True)
    def _in_database(self, database_url: str) -> None:
        self._url = database_url
        self._threads = set(threading.enumerate())

    def open(self) -> Datastore:
        datastore = Datastore(conninfo(self._url))
        self.addCleanup(self._close, datastore)
        return datastore

    def _close(self, datastore: Datastore) -> None:
        """Close after the last reader: the suite tells its readers to stop, but does not wait."""
        pool = {*datastore.pool._workers, datastore.pool._sched_runner}  # noqa: SLF001  # They end with it.
        for thread in set(threading.enumerate()) - self._threads - pool:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        datastore.close()


class TestApplicationRecorder(
    SuiteOnDatabases, suites.ApplicationRecorderTestCase[PostgresLogRecorder]
):
    """A conflict burns positions, so they have gaps; their order is that of the commits."""

    EXPECT_CONTIGUOUS_NOTIFICATION_IDS = False

    def create_recorder(self) -> PostgresLogRecorder:
        return recorder_in(self.open())


class TestNonInterleavingPositions(SuiteOnDatabases, suites.NonInterleavingNotificationIDsBaseCase):
    """Positions of one commit stand together, so whoever follows never skips a late one."""

    def create_recorder(self) -> PostgresLogRecorder:
        return recorder_in(self.open())


def recorder_in(datastore: Datastore) -> PostgresLogRecorder:
    recorder = PostgresLogRecorder(datastore, events_table_name=TABLE)
    recorder.create_table()
    return recorder


@pytest.fixture
def recorder(database_url: str) -> Iterator[PostgresLogRecorder]:
    datastore = Datastore(conninfo(database_url))
    yield recorder_in(datastore)
    datastore.close()


def event(version: int = 1) -> StoredEvent:
    return StoredEvent(uuid4(), version, "topic", b"state")


def test_events_of_one_commit_keep_their_order(recorder: PostgresLogRecorder) -> None:
    events = [event() for _ in range(500)]
    positions = recorder.insert_events(events)
    assert positions == sorted(positions or [])
    found = recorder.select_notifications(None, 500)
    assert [each.originator_id for each in found] == [each.originator_id for each in events]


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
    (position,) = recorder.insert_events([event()]) or []
    assert position > 1
    assert [each.id for each in recorder.select_notifications(None, 9)] == [1, position]


def test_a_writer_waits_until_an_earlier_one_has_committed(
    recorder: PostgresLogRecorder, database_url: str
) -> None:
    """Or a follower could see position 2 before 1 and never go back."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(database_url) as earlier, ThreadPoolExecutor(1) as pool:
        earlier.execute("SELECT pg_advisory_xact_lock(%s)", [key_of(f"public.{TABLE}")])
        later = pool.submit(recorder.insert_events, [event()])
        with psycopg.connect(database_url, autocommit=True) as looking:
            wait_until(lambda: looking.execute(waiting).fetchone() == (1,))
        assert not later.done()
        assert recorder.max_notification_id() is None
        earlier.commit()
        assert later.result(PATIENCE_S) == [1]


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
    recorder.datastore.pool.close()
    readers = Datastore(conninfo(database_url))
    with pytest.raises(NothingInserted):
        PostgresLogRecorder(readers, events_table_name=TABLE).insert_events([event()])
    readers.close()


def test_no_events_are_no_call(recorder: PostgresLogRecorder) -> None:
    assert recorder.insert_events([]) == []
    assert recorder.max_notification_id() is None


def test_an_insert_is_one_statement_that_is_planned_no_more(recorder: PostgresLogRecorder) -> None:
    first = event()
    recorder.insert_events([first])
    for version in range(2, 12):
        recorder.insert_events([replace(first, originator_version=version), event()])
    asked = "SELECT generic_plans, custom_plans FROM pg_prepared_statements"
    with recorder.datastore.get_connection() as connection:
        assert [tuple(each.values()) for each in connection.execute(asked)] == [(6, 5)]


def positions_in(recorder: PostgresLogRecorder) -> list[int]:
    return [each.id for each in recorder.select_notifications(None, 1_000)]


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
    other = Datastore(conninfo(database_url))
    writers, followed, refused = [recorder, recorder_in(other)], 0, list[str]()
    for turn in range(12):
        try:
            writers[turn % 2].insert_events([event(), event()])
        except NothingInserted as error:
            refused.append(str(error.__cause__))
        seen = [each.id for each in recorder.select_notifications(followed, 9)]
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
