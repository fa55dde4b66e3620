"""Whole installations on private servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.cause import Cause
from tests.plan_files import make_demo
from tests.scenarios.partner import Partner
from tests.scenarios.system import System
from tests.servers.databases import Databases

DEPOSIT_MICROS = 1_000_000_000_000  # No load comes to the end of it.


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
    cause = Cause(parts.clock(), "scenario")
    parts.accounts.deposit(demo.organization, DEPOSIT_MICROS, "scenario", cause)
    return Partner(system.url, demo.client_id, demo.client_secret)
