"""A server that is gone is reported within seconds; one that is back serves the next call."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.exc import OperationalError

from app.processes.migrate import migrate
from domain.errors import ServiceUnavailable
from projections.engine.database import is_outage
from tests.app.adapters.conftest import NewProcess
from tests.installation import Process
from tests.projections.looking import register
from tests.servers.postgres import PostgresServer

SOON_S = 5.0


@pytest.fixture
def process(shaky_url: str, new_process: NewProcess) -> Process:
    """A migrated process whose connections are all in use once, so that they can break."""
    made = new_process(shaky_url)
    migrate(made)
    register(made, 3)
    made.projector.catch_up()
    return made


def within(work: Callable[[], object], error: type[Exception]) -> Exception:
    """Return the error that a call ends with, which it does soon."""
    started = time.monotonic()
    with pytest.raises(error) as raised:
        work()
    assert time.monotonic() - started < SOON_S
    return raised.value


def read_views(process: Process) -> int:
    return len(process.positions.all(process.views))


@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.soak), "kill"])
def test_calls_fail_soon_while_the_server_is_away_and_the_first_one_after_it_succeeds(
    process: Process, postgres_up: PostgresServer, end: str
) -> None:
    getattr(postgres_up, end)()
    calls = (process.log.head, lambda: process.log.read(0, 10), lambda: register(process, 1))
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda call: within(call, ServiceUnavailable), calls))
    assert is_outage(within(lambda: read_views(process), OperationalError))
    postgres_up.start()
    assert len(process.log.read(0, 10)) == 3
    register(process, 1)
    for events in (4, 5):
        getattr(postgres_up, end)()
        postgres_up.start()
        assert len(process.log.read(0, 10)) == events
        getattr(postgres_up, end)()
        postgres_up.start()
        register(process, 1)
    assert read_views(process) == len(process.models)
