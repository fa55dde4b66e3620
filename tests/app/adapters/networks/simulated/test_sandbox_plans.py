"""The sandbox plans: each does what the contract says, for creations and for additions alike."""

from collections.abc import Callable

import pytest

from app.adapters.networks.simulated.network import SimulatedNetwork
from domain.links.network import Endpoint, NoEndpoint, ProviderPlan
from domain.provider_errors import OutcomeUnknown, ProviderError, Rejected, Unavailable
from tests.contracts.esim_networks import (
    BASE_PLAN,
    PLAN,
    SPONSOR,
    TIMEOUT_S,
    SimulatedSide,
    a_free_esim,
    a_link,
)

REFUSED: dict[str, type[ProviderError]] = {
    "sandbox-no-endpoint": NoEndpoint,
    "sandbox-provider-error": Unavailable,
    "sandbox-no-esim": Rejected,
}
OTHERS = ("sandbox-lost-reply", "sandbox-slow", "sandbox-unreachable")


def sandbox(name: str) -> ProviderPlan:
    return ProviderPlan(f"sandbox-{name}", data_mb=1_000, validity_days=7)


def create(
    network: SimulatedNetwork,
    iccid: str,
    plan: ProviderPlan,
    reference: str = "link-1",
    timeout_s: float = TIMEOUT_S,
) -> Endpoint:
    return network.create_endpoint(iccid, plan, BASE_PLAN, reference, timeout_s=timeout_s)


def find(network: SimulatedNetwork, iccid: str) -> Endpoint | None:
    return network.find_endpoint(iccid, timeout_s=TIMEOUT_S)


def addons(network: SimulatedNetwork, endpoint_id: str) -> list[str]:
    usage = network.usage(endpoint_id, timeout_s=TIMEOUT_S)
    return [addon.addon_id for addon in usage.addons]


@pytest.mark.parametrize("plan_id", REFUSED)
def test_what_is_refused_leaves_nothing_behind(network: SimulatedNetwork, plan_id: str) -> None:
    plan, iccid = ProviderPlan(plan_id, data_mb=1_000, validity_days=7), a_free_esim(network)

    for _ in range(2):
        with pytest.raises(REFUSED[plan_id]) as caught:
            create(network, iccid, plan)
        assert caught.type is REFUSED[plan_id]

    assert find(network, iccid) is None
    assert a_free_esim(network) == iccid


@pytest.mark.parametrize("plan_id", REFUSED)
def test_an_addition_that_is_refused_changes_nothing(
    network: SimulatedNetwork, plan_id: str
) -> None:
    plan, endpoint_id = ProviderPlan(plan_id, data_mb=1_000, validity_days=7), a_link(network)
    before = addons(network, endpoint_id)

    with pytest.raises(REFUSED[plan_id]) as caught:
        network.add_plan(endpoint_id, plan, "topup-1", timeout_s=TIMEOUT_S)

    assert caught.type is REFUSED[plan_id]
    assert addons(network, endpoint_id) == before


def test_no_esim_is_free_for_the_plan_that_has_none(network: SimulatedNetwork) -> None:
    def free(plan: ProviderPlan) -> int:
        return len(network.available_esims(plan, SPONSOR, "", page=0, timeout_s=TIMEOUT_S))

    assert free(sandbox("no-esim")) == 0
    assert free(PLAN) == free(sandbox("lost-reply")) == 50


def test_the_reply_of_a_creation_is_lost_once(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    iccid = a_free_esim(network)
    with pytest.raises(OutcomeUnknown, match="lost"):
        create(network, iccid, sandbox("lost-reply"))

    found = find(side.connect(), iccid)
    assert found is not None
    assert found.reference == "link-1"
    assert side.waits_s == []
    assert create(network, iccid, sandbox("lost-reply")) == found
    assert addons(network, found.endpoint_id) == [found.addon_id]


def test_the_reply_of_an_addition_is_lost_once(network: SimulatedNetwork) -> None:
    endpoint_id = a_link(network)
    (first,) = addons(network, endpoint_id)
    plan = sandbox("lost-reply")
    with pytest.raises(OutcomeUnknown, match="lost"):
        network.add_plan(endpoint_id, plan, "topup-1", timeout_s=TIMEOUT_S)

    _, second = addons(network, endpoint_id)

    assert network.add_plan(endpoint_id, plan, "topup-1", timeout_s=TIMEOUT_S).addon_id == second
    assert addons(network, endpoint_id) == [first, second]


UNREACHABLE: dict[str, Callable[[SimulatedNetwork, Endpoint], object]] = {
    "usage": lambda network, made: network.usage(made.endpoint_id, timeout_s=TIMEOUT_S),
    "status": lambda network, made: network.status(made.endpoint_id, timeout_s=TIMEOUT_S),
    "lpa": lambda network, made: network.lpa(made.iccid, timeout_s=TIMEOUT_S),
}


@pytest.mark.parametrize("read", UNREACHABLE)
def test_an_endpoint_with_the_unreachable_plan_is_made_but_not_read(
    side: SimulatedSide, network: SimulatedNetwork, read: str
) -> None:
    made = create(network, a_free_esim(network), sandbox("unreachable"))

    for each in (network, side.connect()):
        with pytest.raises(Unavailable, match="cannot be reached"):
            UNREACHABLE[read](each, made)
        assert find(each, made.iccid) == made
    network.suspend(made.endpoint_id, timeout_s=TIMEOUT_S)
    network.resume(made.endpoint_id, timeout_s=TIMEOUT_S)


@pytest.mark.parametrize("read", UNREACHABLE)
def test_an_endpoint_cannot_be_read_once_the_unreachable_plan_was_added(
    side: SimulatedSide, network: SimulatedNetwork, read: str
) -> None:
    made = create(network, a_free_esim(network), PLAN)
    other = create(network, a_free_esim(network), PLAN, "link-2")
    UNREACHABLE[read](network, made)

    added = network.add_plan(
        made.endpoint_id, sandbox("unreachable"), "topup-1", timeout_s=TIMEOUT_S
    )
    network.remove_plan(made.endpoint_id, added, timeout_s=TIMEOUT_S)

    with pytest.raises(Unavailable, match="cannot be reached"):
        UNREACHABLE[read](network, made)
    UNREACHABLE[read](network, other)
    UNREACHABLE[read](side.connect(sandbox=False), made)


@pytest.mark.parametrize("plan_id", [*REFUSED, *OTHERS])
def test_outside_the_sandbox_these_are_plans_like_any_other(
    side: SimulatedSide, plan_id: str
) -> None:
    network = side.connect(sandbox=False)
    plan = ProviderPlan(plan_id, data_mb=1_000, validity_days=7)

    made = create(network, a_free_esim(network, plan), plan)
    added = network.add_plan(made.endpoint_id, plan, "topup-1", timeout_s=TIMEOUT_S).addon_id

    assert addons(network, made.endpoint_id) == [made.addon_id, added]
    assert network.lpa(made.iccid, timeout_s=TIMEOUT_S)
    assert side.waits_s == []
