"""Empty databases, and the log of one whose server a test may stop.

One installation per test, and the process that the test looks from.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from app.settings import Settings
from tests.installation import Process
from tests.servers.databases import Databases
from tests.servers.postgres import PostgresServer

NewProcess = Callable[..., Process]


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """A PostgreSQL database without tables."""
    url = databases.new()
    yield url
    databases.drop(url)


@pytest.fixture
def shaky_url(postgres_up: PostgresServer) -> str:
    """A database without tables, on the private server that a test may stop and kill."""
    name = f"shaky_{uuid4().hex}"  # It goes with the server: connections to it do not last.
    with psycopg.connect(postgres_up.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres_up.url(name)


@pytest.fixture
def new_process(tmp_path: Path) -> Iterator[NewProcess]:
    """Open a database as a process does that names this schema."""
    made: list[Process] = []

    def make(url: str, schema: str = "") -> Process:
        url = f"{url}?options=-csearch_path%3D{schema}" if schema else url
        environment = {"DATABASE_URL": url, "SIGNING_KEYS": str(tmp_path / "keys")}
        made.append(Process(Settings.from_env(environment)))
        return made[-1]

    yield make
    for each in made:
        each.close()
