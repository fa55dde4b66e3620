"""A link on the simulator over one file."""

import pytest

from tests.app.adapters.networks.simulated.links import Link
from tests.contracts.esim_networks import SimulatedSide


@pytest.fixture
def link(side: SimulatedSide) -> Link:
    return Link(side)
