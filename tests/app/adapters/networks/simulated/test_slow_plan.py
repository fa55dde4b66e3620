"""The plan `sandbox-slow`: its call blocks until its time-out, and what it made comes late."""

from datetime import timedelta

import pytest

from app.adapters.networks.simulated.network import LATE, PATIENCE, SimulatedNetwork
from domain.links.network import Endpoint, NoSuchEndpoint
from domain.provider_errors import OutcomeUnknown, Rejected
from tests.contracts.esim_networks import (
    BASE_PLAN,
    PLAN,
    TIMEOUT_S,
    SimulatedSide,
    a_free_esim,
    a_link,
)

SLOW = SimulatedSide.slow


PATIENCE_S = PATIENCE.total_seconds()


def create(network: SimulatedNetwork, iccid: str, timeout_s: float = PATIENCE_S) -> Endpoint:
    return network.create_endpoint(iccid, SLOW, BASE_PLAN, "link-1", timeout_s=timeout_s)


def find(network: SimulatedNetwork, iccid: str) -> Endpoint | None:
    return network.find_endpoint(iccid, timeout_s=TIMEOUT_S)


def add(network: SimulatedNetwork, endpoint_id: str, timeout_s: float = PATIENCE_S) -> str:
    return network.add_plan(endpoint_id, SLOW, "topup-1", timeout_s=timeout_s).addon_id


def addons(network: SimulatedNetwork, endpoint_id: str) -> list[str]:
    usage = network.usage(endpoint_id, timeout_s=TIMEOUT_S)
    return [addon.addon_id for addon in usage.addons]


def test_a_slow_creation_blocks_and_comes_late(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    iccid = a_free_esim(network)
    with pytest.raises(OutcomeUnknown, match="late"):
        create(network, iccid, timeout_s=PATIENCE_S)

    assert side.waits_s == [PATIENCE_S]
    assert find(network, iccid) is None
    assert iccid != a_free_esim(network)
    side.forward(LATE - timedelta(microseconds=1))
    assert find(network, iccid) is None
    side.forward(timedelta(microseconds=1))
    found = find(network, iccid)
    assert found is not None
    assert network.usage(found.endpoint_id, timeout_s=TIMEOUT_S).installed_at is None


def test_what_is_yet_to_come_is_not_there_for_any_call(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    iccid = a_free_esim(network)
    with pytest.raises(OutcomeUnknown):
        create(network, iccid)
    side.forward(LATE)
    found = find(network, iccid)
    assert found is not None
    endpoint_id = found.endpoint_id

    side.forward(-LATE)

    for call in (network.usage, network.status, network.suspend, network.resume):
        with pytest.raises(NoSuchEndpoint):
            call(endpoint_id, timeout_s=TIMEOUT_S)
    network.remove_endpoint(endpoint_id, timeout_s=TIMEOUT_S)
    with pytest.raises(Rejected):
        network.release_esim(iccid, timeout_s=TIMEOUT_S)
    side.forward(LATE)
    assert find(network, iccid) == found


def test_a_slow_creation_repeated_is_as_slow_and_comes_no_later(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    iccid = a_free_esim(network)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown, match="late"):
            create(network, iccid, timeout_s=2.0)

    assert side.waits_s == [2.0, 2.0]
    side.forward(PATIENCE + LATE - timedelta(seconds=4))
    found = find(network, iccid)
    assert found is not None
    assert create(network, iccid) == found
    assert side.waits_s == [2.0, 2.0]


def test_a_late_endpoint_can_be_removed_and_its_esim_given_back(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    iccid = a_free_esim(network)
    with pytest.raises(OutcomeUnknown):
        create(network, iccid)
    side.forward(LATE)
    found = find(network, iccid)
    assert found is not None

    network.remove_endpoint(found.endpoint_id, timeout_s=TIMEOUT_S)
    network.release_esim(iccid, timeout_s=TIMEOUT_S)

    assert find(network, iccid) is None
    assert a_free_esim(network) == iccid


@pytest.mark.parametrize("timeout_s", [0.1, 15.0, 17.0, 18.0, 60.0])
def test_whatever_the_time_out_an_outcome_settles_when_it_must(
    side: SimulatedSide, network: SimulatedNetwork, timeout_s: float
) -> None:
    iccid, began = a_free_esim(network), side.clock()
    with pytest.raises(OutcomeUnknown):
        create(network, iccid, timeout_s=timeout_s)

    side.clock.now = began + PATIENCE + LATE

    assert network.settles_after == PATIENCE + LATE
    assert find(network, iccid) is not None


def test_a_slow_addition_blocks_and_comes_late(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    endpoint_id = a_link(network)
    first = addons(network, endpoint_id)
    with pytest.raises(OutcomeUnknown, match="late"):
        add(network, endpoint_id, timeout_s=PATIENCE_S)

    assert side.waits_s == [PATIENCE_S]
    assert addons(network, endpoint_id) == first
    side.forward(LATE)
    assert len(addons(network, endpoint_id)) == 2


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


def test_an_addition_that_is_yet_to_come_cannot_be_taken_off(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    endpoint_id = a_link(network)
    with pytest.raises(OutcomeUnknown):
        add(network, endpoint_id, timeout_s=PATIENCE_S)
    side.forward(LATE)
    _, late = addons(network, endpoint_id)
    side.forward(-LATE)

    network.remove_plan(endpoint_id, late, timeout_s=TIMEOUT_S)

    side.forward(LATE)
    assert addons(network, endpoint_id)[1] == late


def test_a_plan_bought_meanwhile_is_used_before_the_late_one(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    endpoint_id = a_link(network)
    with pytest.raises(OutcomeUnknown):
        add(network, endpoint_id, timeout_s=PATIENCE_S)
    quick = network.add_plan(endpoint_id, PLAN, "topup-2", timeout_s=TIMEOUT_S).addon_id

    side.forward(LATE)

    assert addons(network, endpoint_id)[1] == quick
