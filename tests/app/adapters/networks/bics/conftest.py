"""Fixtures: a scripted account at BICS, and the adapter over real sockets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.adapters.networks.bics.network import BicsNetwork
from tests.contracts.esim_networks import BicsSide
from tests.support.providers.bics import BicsServer


@pytest.fixture
def side(tmp_path: Path) -> Iterator[BicsSide]:
    made = BicsSide(tmp_path)
    yield made
    made.close()


@pytest.fixture
def server(side: BicsSide) -> BicsServer:
    return side.server


@pytest.fixture
def network(side: BicsSide) -> BicsNetwork:
    return side.connect()
