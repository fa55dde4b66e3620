"""A silent server whose kernel still answers delays no caller for long."""

import time
from collections.abc import Iterator

import psycopg
import pytest

from app.adapters.postgres import connection as postgres_connection
from app.adapters.postgres.connection import BoundedConnection, ServerSilent
from app.adapters.postgres.database import conninfo
from domain.errors import ServiceUnavailable
from projections.engine.database import is_outage
from tests.app.adapters.conftest import NewProcess
from tests.installation import Process
from tests.projections.looking import places, register
from tests.scenarios.relay import Relay

SPARE_S = 0.2
SHORT = "options=-c%20statement_timeout%3D300"
SOON_S = 5.0


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_connection, "SPARE_S", SPARE_S)


@pytest.fixture
def relay(migrated_url: str) -> Iterator[Relay]:
    with Relay(migrated_url, 5432) as relay:
        yield relay


@pytest.fixture
def process(relay: Relay, new_process: NewProcess) -> Process:
    """A process whose connections have all been used."""
    made = new_process(f"{relay.url}?{SHORT}")
    register(made, 3)
    made.projector.catch_up()
    return made


def test_an_answer_is_waited_for_as_long_as_the_statement_may_take(relay: Relay) -> None:
    with BoundedConnection.open(conninfo(relay.url), statement_timeout_ms=0) as connection:
        assert connection.answer_s is None
    with BoundedConnection.open(conninfo(f"{relay.url}?{SHORT}")) as connection:
        assert connection.answer_s == 0.3 + SPARE_S
        with pytest.raises(psycopg.errors.QueryCanceled):  # The server itself says so first.
            connection.execute("SELECT pg_sleep(1)")
        relay.fall_silent()
        with pytest.raises(ServerSilent, match="not answered within"):
            connection.execute("SELECT 1")
        assert connection.closed


def test_a_session_that_never_begins_is_given_up(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a pooler that takes connections and has no session to give."""
    monkeypatch.setattr(BoundedConnection, "answer_s", SPARE_S)
    run = BoundedConnection.run

    def fall_silent_first(connection: BoundedConnection, statements: str) -> object:
        relay.fall_silent()
        return run(connection, statements)

    monkeypatch.setattr(BoundedConnection, "run", fall_silent_first)
    with pytest.raises(ServerSilent):
        BoundedConnection.open(conninfo(relay.url))


def test_every_kind_of_call_outlives_deaf_connections(process: Process, relay: Relay) -> None:
    relay.deafen()
    started = time.monotonic()
    assert process.log.head() == 3  # At once again, on a new connection.
    register(process, 1)
    with pytest.raises(Exception, match="not answered") as raised, process.views.writing() as views:
        views.exec_driver_sql("DELETE FROM follower_positions WHERE name = 'nobody'")
    assert is_outage(raised.value)
    process.projector.catch_up()
    assert set(places(process).values()) == {process.log.head()}
    assert time.monotonic() - started < SOON_S


def test_a_server_that_stays_silent_is_an_outage(process: Process, relay: Relay) -> None:
    relay.fall_silent()
    started = time.monotonic()
    with pytest.raises(ServiceUnavailable):
        process.log.head()
    assert time.monotonic() - started < 2 * SOON_S
