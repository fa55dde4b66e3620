"""The sandbox plans: each does what the contract says, for creations and for additions alike."""

from collections.abc import Callable

import pytest

from app.adapters.networks.simulated.network import Fault, SimulatedNetwork
from domain.links.network import Endpoint, ProviderPlan
from domain.provider_errors import Unavailable
from tests.app.adapters.networks.simulated.links import addons, create
from tests.contracts.esim_networks import PLAN, TIMEOUT_S, SimulatedSide, a_free_esim


def sandbox(name: str) -> ProviderPlan:
    return ProviderPlan(f"sandbox-{name}", data_mb=1_000, validity_days=7)


UNREACHABLE: dict[str, Callable[[SimulatedNetwork, Endpoint], object]] = {
    "usage": lambda network, made: network.usage(made.endpoint_id, timeout_s=TIMEOUT_S),
    "status": lambda network, made: network.status(made.endpoint_id, timeout_s=TIMEOUT_S),
    "lpa": lambda network, made: network.lpa(made.iccid, timeout_s=TIMEOUT_S),
}


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


@pytest.mark.parametrize("plan_id", Fault)
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
