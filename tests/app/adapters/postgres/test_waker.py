"""Whoever waits for the log is woken by a commit, in whatever process and after any outage."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from select import select
from uuid import uuid4

import psycopg
import pytest

from app.adapters.postgres import waker as postgres_waker
from app.adapters.postgres.connection import BoundedConnection
from app.adapters.postgres.database import conninfo
from app.adapters.postgres.waker import (
    CHANNEL,
    NONE,
    STREAMS_MAX,
    PostgresWaker,
    payload_of,
    streams_of,
)
from domain.log.signal import Signal
from projections.engine.freshness import wait_until_projected
from tests.installation import PATIENCE_S, Process, numbers, postgresql_only, wait_until
from tests.projections.looking import register
from tests.scenarios.relay import Relay
from tests.servers.postgres import PostgresServer

SOON_S = PATIENCE_S / 2  # A wake-up takes milliseconds, without one the wait lasts PATIENCE_S.
LISTENING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE query = 'LISTEN log_events' AND datname = current_database()
"""

END_LISTENERS = LISTENING.replace("count(*)", "pg_terminate_backend(pid, 20000)")


class Listener(PostgresWaker):
    """Listens for a signal of its own."""

    def __init__(self, url: str) -> None:
        self.heard = Signal()
        super().__init__(self.heard, conninfo(url), CHANNEL)


@pytest.fixture
def waker(database_url: str) -> Iterator[Listener]:
    with closing(Listener(database_url)) as listener:
        yield listener


@pytest.fixture
def shaky_waker(shaky_url: str) -> Iterator[Listener]:
    with closing(Listener(shaky_url)) as listener:
        yield listener


def notify(url: str, payload: str = "") -> None:
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_notify(%s, %s)", [CHANNEL, payload])


def until_it_listens(waker: Listener, url: str, channel: str = CHANNEL) -> None:
    """Wait for the LISTEN and for the one wake-up that it brings along."""
    before = waker.heard.count
    waker.start()
    with psycopg.connect(url, autocommit=True) as other:
        listening = LISTENING.replace(CHANNEL, channel)
        wait_until(lambda: other.execute(listening).fetchone() != (0,))
    wait_until(lambda: waker.heard.count > before)


def seconds(work: Callable[[], bool]) -> float:
    started = time.monotonic()
    assert work()
    return time.monotonic() - started


@postgresql_only("on SQLite everything is one process")
def test_only_commits_that_ask_for_work_wake_the_dispatcher(process: Process) -> None:
    url = process.settings.database_url
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute("LISTEN log_work")
        organization_id = process.organization()
        process.create_job(organization_id, numbers(1))
        register(process, 1)
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_notify('log_work', 'the end')")
        heard = listener.notifies(timeout=PATIENCE_S, stop_after=2)
        assert [each.payload for each in heard] == ["", "the end"]


@postgresql_only("on SQLite everything is one process")
def test_nobody_is_told_of_mere_steps_until_somebody_waits_for_a_read_model(
    process: Process,
) -> None:
    url, name = process.settings.database_url, process.transactions.name
    organization_id = process.organization()
    process.projector.catch_up()
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}")
        process.look_up(organization_id)
        assert wait_until_projected(process.source, [name]) is False
        process.projector.catch_up()
        assert wait_until_projected(process.source, [name])
        notify(url)
        heard = [each.payload for each in listener.notifies(timeout=PATIENCE_S, stop_after=2)]
    assert heard == [NONE, ""], "of the charge none, one of the wait, none of a wait that is over"


def test_what_came_before_anybody_listened_is_looked_for(waker: Listener) -> None:
    waker.start()
    assert waker.heard.wait(waker.heard.count, PATIENCE_S)


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "LISTEN" in each.getMessage()]


def test_a_listener_that_is_ended_says_so_once_and_listens_again(
    waker: Listener, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    until_it_listens(waker, database_url)
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute(END_LISTENERS)
    wait_until(lambda: len(lines_of(caplog)) == 2)
    seen = waker.heard.count
    notify(database_url)
    assert seconds(lambda: waker.heard.wait(seen, PATIENCE_S)) < SOON_S
    failed, works = lines_of(caplog)
    assert "failed: OperationalError: consuming input failed: server closed the conn" in failed
    assert works.endswith("works again")


def test_a_deaf_listener_is_noticed_and_replaced(
    database_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(postgres_waker, "PROBE_S", 0.2)
    monkeypatch.setattr(postgres_waker, "PROBE_ANSWER_S", 0.2)
    with Relay(database_url, 5432) as relay, closing(Listener(relay.url)) as waker:
        waker.start()
        wait_until(lambda: waker.heard.count > 0)  # It listens.
        relay.deafen()
        wait_until(lambda: len(lines_of(caplog)) == 2)
        seen = waker.heard.count
        notify(database_url)
        assert waker.heard.wait(seen, PATIENCE_S)
    failed, works = lines_of(caplog)
    assert "failed: ServerSilent: the server has not answered within" in failed
    assert works.endswith("works again")


def test_what_comes_before_the_answer_to_a_question_is_heard(
    waker: Listener, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, heard, run = list[str](), list[object](), BoundedConnection.run

    def told_before(connection: BoundedConnection, text: str) -> object:
        asked.append(text)
        if len(asked) > 3:
            notify(database_url, "a")
            assert select([connection], [], [], PATIENCE_S)[0]
        return run(connection, text)

    until_it_listens(waker, database_url)
    waker.heard.observer = heard.append  # As whoever remembers.
    monkeypatch.setattr(BoundedConnection, "run", told_before)
    monkeypatch.setattr(postgres_waker, "PROBE_S", 0)
    notify(database_url)
    wait_until(lambda: len(heard) > 1)
    assert heard[:2] == [None, {"a"}], "a mere answer is no news"


def test_a_server_that_stays_away_is_complained_of_once(
    shaky_waker: Listener,
    postgres_up: PostgresServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_waker, "RETRY_S", 0.01)
    tries = watched_connects(monkeypatch)
    postgres_up.stop()
    shaky_waker.start()
    wait_until(lambda: len(tries) > 3)
    assert len(lines_of(caplog)) == 1
    assert f"port {postgres_up.port} failed: Connection refused" in lines_of(caplog)[0]
    postgres_up.start()


def watched_connects(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    tries, connect = list[str](), BoundedConnection.open

    def counted(conninfo: str, *more: str) -> BoundedConnection:
        tries.append(conninfo)
        return connect(conninfo, *more)

    monkeypatch.setattr(BoundedConnection, "open", counted)
    return tries


def test_a_closed_one_leaves_no_connection(waker: Listener, database_url: str) -> None:
    until_it_listens(waker, database_url)
    waker.close()
    with psycopg.connect(database_url, autocommit=True) as other:
        wait_until(lambda: other.execute(LISTENING).fetchone() == (0,))
    assert not waker.heard.wait(waker.heard.count, 0.05)


def test_a_commit_names_the_streams_that_somebody_may_wait_for_unless_they_are_too_many() -> None:
    one, other = uuid4().hex, uuid4().hex
    assert streams_of({payload_of({one}), payload_of({other, one})}) == {one, other}
    assert streams_of({payload_of(()), payload_of({one})}) == {one}
    assert streams_of({payload_of(())}) == set()
    streams = {uuid4().hex for _ in range(STREAMS_MAX)}
    told = payload_of(streams)
    assert len(told.encode()) < 8_000, "that is all that the server takes"
    assert streams_of([told]) == streams
    assert streams_of([told, payload_of({*streams, one})]) is None
    assert streams_of([one, "nonsense \ufffd"]) is not None
    assert streams_of([""]) is None
