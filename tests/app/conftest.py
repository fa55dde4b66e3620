"""One installation per test, and the process that the test looks from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.house import House
from tests.installation import Installation, SetClock
from tests.seeds import PostgresSeed, sqlite_seed
from tests.servers.databases import Databases


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    installation, clock = Installation(tmp_path, like=sqlite_seed()), SetClock()
    yield House(installation.process(clock), clock)
    installation.close()


@pytest.fixture
def migrated_url(databases: Databases, tmp_path: Path) -> Iterator[str]:
    """A PostgreSQL database with tables, which takes a twentieth of the time to make them."""
    seed = PostgresSeed(databases)
    made = seed.copy(tmp_path)
    yield made
    seed.drop(made)
