"""Turns between processes: one process at a time, never for ever, and no error without a turn."""

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from uuid import UUID

import psycopg
import pytest

from app.adapters.postgres import turns as postgres_turns
from app.adapters.postgres.database import PostgresDatabase
from app.adapters.postgres.turns import PostgresTurns
from tests.app.adapters.turn_holder import PATIENCE_S, holder
from tests.installation import wait_until
from tests.servers.postgres import PostgresServer

WALLET = UUID("3b0d5a5e-36e5-4f1b-9d0a-5b1f8f6b2a11")
OTHER = UUID("9f6c1d7e-0e0f-4a7b-8c39-64f3f1c2d522")
LONG_MS = 10_000
SOON_S = 5.0
IN_LINE = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event = 'advisory'"
)
END_ALL = (  # It waits until they have ended.
    "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)

NewTurns = Callable[[], PostgresTurns]


def turns_in(url: str) -> Iterator[NewTurns]:
    made: list[PostgresTurns] = []

    def make() -> PostgresTurns:
        made.append(PostgresDatabase(url).turns())
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def new_turns(database_url: str) -> Iterator[NewTurns]:
    yield from turns_in(database_url)


@pytest.fixture
def shaky_turns(shaky_url: str) -> Iterator[NewTurns]:
    yield from turns_in(shaky_url)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everybody wait until the turn comes."""
    monkeypatch.setattr(postgres_turns, "WAIT_MS", LONG_MS)


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the next call ask the server at once."""
    monkeypatch.setattr(postgres_turns, "REST_S", 0.0)


def in_line(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(IN_LINE).fetchone()
        assert row is not None
        return int(row[0])


@pytest.mark.usefixtures("patient")
def test_the_next_in_the_line_has_its_turn_when_the_first_ends(
    new_turns: NewTurns, database_url: str
) -> None:
    first, second = new_turns(), new_turns()
    assert first.take([WALLET])
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(second.take, [WALLET])
        wait_until(lambda: in_line(database_url) == 1)
        assert not waiting.done()
        first.end()
        assert waiting.result(PATIENCE_S)


def test_who_waits_too_long_goes_without_and_holds_nothing(new_turns: NewTurns) -> None:
    first, second, third = new_turns(), new_turns(), new_turns()
    assert first.take([WALLET])
    assert not second.take([OTHER, WALLET])
    assert third.take([OTHER])
    first.end()
    third.end()
    assert second.take([OTHER, WALLET])


@pytest.mark.usefixtures("patient")
def test_nobody_waits_in_a_circle(new_turns: NewTurns) -> None:
    def often(wallets: list[UUID]) -> bool:
        turns, came = new_turns(), True
        for _ in range(100):
            came = turns.take(wallets) and came
            turns.end()
        return came

    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(often, order) for order in ([WALLET, OTHER], [OTHER, WALLET])]
        assert [run.result(PATIENCE_S) for run in runs] == [True, True]


@pytest.mark.usefixtures("patient")
def test_the_turn_of_a_killed_process_ends(new_turns: NewTurns, database_url: str) -> None:
    with holder(database_url, WALLET) as process:
        process.kill()
        assert new_turns().take([WALLET])


def test_a_process_that_stands_still_holds_others_up_for_a_moment_only(
    new_turns: NewTurns, database_url: str
) -> None:
    turns = new_turns()
    with holder(database_url, WALLET) as process:
        process.send_signal(signal.SIGSTOP)
        started = monotonic()
        wait_until(lambda: turns.take([WALLET]))  # Refused, until the server has ended the holder.
        assert monotonic() - started < SOON_S
        turns.end()
        process.send_signal(signal.SIGCONT)
        process.communicate()
        assert process.returncode == 0  # What it had lost is no error when it ends its turn.


@pytest.mark.usefixtures("restless")
def test_a_lost_connection_costs_one_turn(new_turns: NewTurns, database_url: str) -> None:
    turns = new_turns()
    assert turns.take([WALLET])
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(END_ALL)
    turns.end()
    assert turns.take([WALLET])
    turns.end()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(END_ALL)
    assert not turns.take([WALLET])
    assert turns.take([WALLET])


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.soak), "kill"])
def test_while_the_server_is_away_there_are_no_turns_and_afterwards_there_are(
    shaky_turns: NewTurns, postgres_up: PostgresServer, end: str
) -> None:
    turns = shaky_turns()
    assert turns.take([WALLET])
    getattr(postgres_up, end)()
    turns.end()
    assert not turns.take([WALLET])
    postgres_up.start()
    assert turns.take([WALLET])
