"""Whole installations on private servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.partner import Partner
from tests.house.system import System
from tests.plan_files import make_demo
from tests.servers.databases import Databases

DEPOSIT = "1000000"  # No load comes to the end of it.


@pytest.fixture
def system(tmp_path: Path, databases: Databases, broker_url: str) -> Iterator[System]:
    """An empty database and an empty virtual host; no process runs."""
    url = databases.new()
    made = System(tmp_path, url, broker_url)
    yield made
    made.close()
    databases.drop(url)


def partner_of(system: System) -> Partner:
    """Return the client of an organization with money and plans; the tables must be there."""
    parts = system.container
    demo = make_demo(parts)
    parts.deposit(demo.organization, DEPOSIT)
    return Partner(system.url, demo.client_id, demo.client_secret)
