"""Empty databases, and the log of one whose server a test may stop.

One installation per test, and the process that the test looks from.
"""

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from tests.servers.databases import Databases
from tests.servers.postgres import PostgresServer


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
