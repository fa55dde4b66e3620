"""Fixtures: every eSIM network of the shape that a suite is about, one after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.links.network import EsimNetwork
from tests.contracts.esim_networks import BY_ORDER, NETWORKS, STOCKS, FarSide
from tests.contracts.network_calls import calls_of

GUARDED = "simulated behind a circuit"  # It passes calls on: bare or guarded, each suite has one.
BARE = "simulated"
SIDES = {
    "test_esim_network": [each for each in STOCKS if each != GUARDED],
    "test_esim_network_plans": [each for each in NETWORKS if each != BARE],
    "test_order_network": BY_ORDER,
}
CALLS = [
    (side, call) for side in NETWORKS for call in calls_of("stock" if side in STOCKS else "order")
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Hold a suite of one shape against the networks of this shape, another against all.

    A test of a `call` is one of each call of each network.
    """
    if "call" in metafunc.fixturenames:
        metafunc.parametrize(("far_side", "call"), CALLS, indirect=["far_side"])
    elif "far_side" in metafunc.fixturenames:
        suite = metafunc.module.__name__.rpartition(".")[2]
        bare = [each for each in NETWORKS if each != GUARDED]
        metafunc.parametrize("far_side", [*SIDES.get(suite, bare)], indirect=True)


@pytest.fixture
def far_side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FarSide]:
    made = NETWORKS[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def network(far_side: FarSide) -> EsimNetwork:
    return far_side.connect()
