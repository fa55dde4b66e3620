"""The plan `sandbox-slow`: its call blocks until its time-out, and what it made comes late."""

from datetime import timedelta

import pytest

from app.adapters.networks.simulated.network import LATE, PATIENCE, SimulatedNetwork
from domain.links.network import Endpoint, NoSuchEndpoint
from domain.provider_errors import OutcomeUnknown, Rejected
from tests.app.adapters.networks.simulated.links import addons, create
from tests.contracts.esim_networks import TIMEOUT_S, SimulatedSide, a_free_esim, a_link

SLOW = SimulatedSide.slow


PATIENCE_S = PATIENCE.total_seconds()


def find(network: SimulatedNetwork, iccid: str) -> Endpoint | None:
    return network.find_endpoint(iccid, timeout_s=TIMEOUT_S)


def add(network: SimulatedNetwork, endpoint_id: str, timeout_s: float = PATIENCE_S) -> str:
    return network.add_plan(endpoint_id, SLOW, "topup-1", timeout_s=timeout_s).addon_id


def test_what_is_yet_to_come_is_not_there_for_any_call(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    iccid = a_free_esim(network)
    with pytest.raises(OutcomeUnknown):
        create(network, iccid, SLOW, timeout_s=PATIENCE_S)
    side.forward(LATE)
    found = find(network, iccid)
    assert found is not None
    endpoint_id = found.endpoint_id
    side.forward(-LATE)
    assert find(network, iccid) is None
    for call in (network.usage, network.status, network.suspend, network.resume):
        with pytest.raises(NoSuchEndpoint):
            call(endpoint_id, timeout_s=TIMEOUT_S)
    network.remove_endpoint(endpoint_id, timeout_s=TIMEOUT_S)
    with pytest.raises(Rejected):
        network.release_esim(iccid, timeout_s=TIMEOUT_S)
    side.forward(LATE)
    assert find(network, iccid) == found


@pytest.mark.parametrize("timeout_s", [0.1, 15.0, 17.0, 18.0, 60.0])
def test_whatever_the_time_out_an_outcome_settles_when_it_must(
    side: SimulatedSide, network: SimulatedNetwork, timeout_s: float
) -> None:
    iccid, began = a_free_esim(network), side.clock()
    with pytest.raises(OutcomeUnknown):
        create(network, iccid, SLOW, timeout_s=timeout_s)
    side.clock.now = began + PATIENCE + LATE
    assert network.settles_after == PATIENCE + LATE
    assert find(network, iccid) is not None


def test_a_slow_addition_repeated_is_as_slow_and_comes_no_later(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    endpoint_id = a_link(network)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown, match="late"):
            add(network, endpoint_id, timeout_s=2.0)
    side.forward(PATIENCE + LATE - timedelta(seconds=4))
    _, late = addons(network, endpoint_id)
    again = add(network, endpoint_id, timeout_s=2.0)
    assert again == late
    assert side.waits_s == [2.0, 2.0]
