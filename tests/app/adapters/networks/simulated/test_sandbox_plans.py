"""The sandbox plans: each does what the contract says, for creations and for additions alike."""

from collections.abc import Callable
from functools import partial

import pytest

from app.adapters.networks.simulated.network import Fault, SimulatedNetwork
from domain.links.network import Endpoint, ProviderPlan
from domain.provider_errors import Unavailable
from tests.app.adapters.networks.simulated.links import addons, create
from tests.contracts.esim_networks import PLAN, TIMEOUT_S, SimulatedSide, a_free_esim


def test_an_endpoint_cannot_be_read_once_the_unreachable_plan_was_added(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    def reads(by: SimulatedNetwork, made: Endpoint) -> list[Callable[[], object]]:
        calls = {by.usage: made.endpoint_id, by.status: made.endpoint_id, by.lpa: made.iccid}
        return [partial(call, of, timeout_s=TIMEOUT_S) for call, of in calls.items()]

    made = create(network, a_free_esim(network), PLAN)
    other = create(network, a_free_esim(network), PLAN, "link-2")
    plan = ProviderPlan("sandbox-unreachable", data_mb=1_000, validity_days=7)
    added = network.add_plan(made.endpoint_id, plan, "topup-1", timeout_s=TIMEOUT_S)
    network.remove_plan(made.endpoint_id, added.addon_id, timeout_s=TIMEOUT_S)
    for read in reads(network, made):
        with pytest.raises(Unavailable, match="cannot be reached"):
            read()
    for read in (*reads(network, other), *reads(side.connect(sandbox=False), made)):
        read()


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
