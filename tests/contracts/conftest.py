"""Fixtures: every eSIM network of the shape that a suite is about, one after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.links.network import EsimNetwork
from tests.contracts.esim_networks import BY_ORDER, NETWORKS, STOCKS, FarSide

GUARDED = "simulated behind a circuit"  # It passes calls on, so one suite of all calls will do.
BARE = [each for each in NETWORKS if each != GUARDED]
SIDES = {
    "test_esim_network": [each for each in STOCKS if each != GUARDED],
    "test_esim_network_trouble": STOCKS,
    "test_order_network": BY_ORDER,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Hold a suite of one shape against the networks of this shape, another against all."""
    if "far_side" in metafunc.fixturenames:
        suite = metafunc.module.__name__.rpartition(".")[2]
        metafunc.parametrize("far_side", [*SIDES.get(suite, BARE)], indirect=True)


@pytest.fixture
def far_side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FarSide]:
    made = NETWORKS[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def network(far_side: FarSide) -> EsimNetwork:
    return far_side.connect()
