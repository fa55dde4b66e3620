"""Fixtures: every eSIM network, one after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.links.network import EsimNetwork
from tests.contracts.esim_networks import NETWORKS, FarSide


@pytest.fixture(params=list(NETWORKS))
def far_side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FarSide]:
    made = NETWORKS[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def network(far_side: FarSide) -> EsimNetwork:
    return far_side.connect()
