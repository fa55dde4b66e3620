"""The servers of a session: those that the environment names, or private ones; started when used.

Without either a test is skipped on a laptop; it fails where CI is set.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NoReturn, TypeVar

import pytest

from tests.servers.browser import Browser
from tests.servers.clock import CI
from tests.servers.databases import Databases
from tests.servers.given_broker import BROKER, delete_queues, given_broker
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitServer
from tests.servers.running import NotInstalled

T = TypeVar("T")

DATABASE = "TEST_DATABASE_URL"


def started(server: Callable[[], T], kind: str, setting: str = "") -> T:
    """Start a private server; without its programs the test is skipped, or fails under CI."""
    try:
        return server()
    except NotInstalled as error:
        otherwise = f", or set {setting}" if setting else ""
        missing(f"{kind} is missing: {error}; install it{otherwise}")


def missing(reason: str) -> NoReturn:
    if CI:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """Databases for the whole session, on the server of TEST_DATABASE_URL or a private one."""
    given = os.environ.get(DATABASE)
    server = None if given else started(PostgresServer, "PostgreSQL", DATABASE)
    made = Databases(given or server.url())  # type: ignore[union-attr]  # One of the two is there.
    yield made
    made.close()
    if server is not None:
        server.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A private server that a test may stop and kill; whoever does so starts it again."""
    with closing(started(PostgresServer, "PostgreSQL")) as server:
        yield server


@pytest.fixture
def postgres_up(postgres: PostgresServer) -> PostgresServer:
    """The private server, started again when an earlier test has left it stopped."""
    if not postgres.is_running():
        postgres.start()
    return postgres


@pytest.fixture
def pooler() -> Iterator[Callable[..., PgBouncer]]:
    """Start poolers before the server of a URL: by their mode and size."""
    made: list[PgBouncer] = []

    def start(url: str, mode: str, size: int = 20) -> PgBouncer:
        server = started(lambda: PgBouncer(url, mode, size), "PgBouncer")
        made.append(server)
        return server

    yield start
    for each in made:
        each.close()


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitServer]:
    """A private broker that a test may stop and kill; whoever does so starts it again."""
    with closing(started(RabbitServer, "RabbitMQ", BROKER)) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium for the whole session; its `page` is a new visitor each time."""
    with closing(started(Browser, "Chromium")) as server:
        yield server


@pytest.fixture
def broker_url(request: pytest.FixtureRequest) -> str:
    """A virtual host that has no queue of ours."""
    return fresh_url(request)


def fresh_url(request: pytest.FixtureRequest) -> str:
    """Return a URL without any queue of ours: the given one, or the private server's."""
    url = given_broker()
    if url is None:
        server = request.getfixturevalue("rabbitmq")
        if not server.is_running():
            server.start()
        url = server.url()
    delete_queues(url)
    return url
