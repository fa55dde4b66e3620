"""Session locks: one holder among processes, for as long as its connection lives."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from app.adapters.postgres import lock as postgres_lock
from app.adapters.postgres.database import conninfo
from app.adapters.postgres.lock import SessionLock, key_of
from domain.errors import ServiceUnavailable
from tests.installation import wait_until
from tests.servers.postgres import PostgresServer

NewLock = Callable[[str], SessionLock]
END = (  # It waits until they have ended.
    "SELECT pg_terminate_backend(pid, 20000) FROM pg_locks JOIN pg_database d ON d.oid = database"
    " WHERE locktype = 'advisory' AND datname = current_database()"
)


def locks_in(url: str) -> Iterator[NewLock]:
    made: list[SessionLock] = []

    def make(name: str) -> SessionLock:
        made.append(SessionLock(conninfo(url), key_of(name)))
        return made[-1]

    yield make
    for each in made:
        each.release()


@pytest.fixture
def new_lock(database_url: str) -> Iterator[NewLock]:
    yield from locks_in(database_url)


@pytest.fixture
def shaky_lock(shaky_url: str) -> Iterator[NewLock]:
    yield from locks_in(shaky_url)


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a holder ask the server each time instead of once a second."""
    monkeypatch.setattr(postgres_lock, "CHECK_S", 0.0)


def test_one_of_two_holds_and_the_other_follows(new_lock: NewLock) -> None:
    first, second = new_lock("projector"), new_lock("projector")
    first.release()  # What is not held.
    assert first.acquire()
    assert not second.acquire()
    assert first.acquire()
    assert new_lock("dispatcher").acquire(), "another name is another lock"
    for _ in range(2):
        first.release()
    wait_until(second.acquire)  # The server has to read that the connection was closed.
    assert not first.acquire()


@pytest.mark.usefixtures("unheard")
def test_a_lock_ends_with_its_connection_and_that_is_noticed(
    new_lock: NewLock, database_url: str
) -> None:
    first, second = new_lock("clock"), new_lock("clock")
    assert first.acquire()
    with psycopg.connect(database_url, autocommit=True) as other:
        assert other.execute(END).fetchall() == [(True,)]
    wait_until(second.acquire)
    with pytest.raises(ServiceUnavailable):
        first.acquire()
    assert not first.acquire()


@pytest.mark.usefixtures("unheard")
def test_while_the_server_is_away_nobody_holds_and_afterwards_one_does(
    shaky_lock: NewLock, postgres_up: PostgresServer
) -> None:
    first, second = shaky_lock("projector"), shaky_lock("projector")
    assert first.acquire()
    assert not second.acquire()
    postgres_up.kill()
    for each in (first, second, first):
        with pytest.raises(ServiceUnavailable):
            each.acquire()
    postgres_up.start()
    assert second.acquire()
    assert not first.acquire()


def test_the_number_of_a_lock_is_the_same_in_every_release() -> None:
    assert key_of("projector") == 2956339590897646729
    assert key_of("projector") != key_of("dispatcher")
    assert -(2**63) <= key_of("migrate") < 2**63
