"""The simulator over one file, and the process through which a test sees it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.adapters.networks.simulated.network import SimulatedNetwork
from tests.app.adapters.networks.simulated.links import Link
from tests.contracts.esim_networks import SimulatedSide


@pytest.fixture
def side(tmp_path: Path) -> Iterator[SimulatedSide]:
    made = SimulatedSide(tmp_path)
    yield made
    made.close()


@pytest.fixture
def network(side: SimulatedSide) -> SimulatedNetwork:
    return side.connect()


@pytest.fixture
def link(side: SimulatedSide) -> Link:
    return Link(side)
