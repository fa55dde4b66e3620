"""The contract that every network by order signs; what its plans do is asked of all networks."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from domain.links.network import Order, OrderNetwork, ProviderPlan
from domain.provider_errors import OutcomeUnknown, Rejected
from tests.contracts.esim_networks import OTHER_PLAN, PLAN, TIMEOUT_S, FarSide
from tests.installation import PATIENCE_S

SENT_S = 0.5  # An order has been sent by then, on a crowded machine too.
NOT_SOLD = ProviderPlan("refused-everywhere", data_mb=1_000, validity_days=7)


def buy(network: OrderNetwork, plan: ProviderPlan = PLAN, reference: str = "link-1") -> Order:
    return network.order(plan, reference, timeout_s=TIMEOUT_S)


def listed(
    network: OrderNetwork,
    since: Order,
    plan: ProviderPlan = PLAN,
    until: datetime | None = None,
) -> list[str]:
    until = until or since.placed_at + timedelta(hours=1)
    orders = network.orders(plan, since.placed_at, until, timeout_s=TIMEOUT_S)
    return [order.order_reference for order in orders]


def test_an_order_brings_an_active_esim_with_its_plan(network: OrderNetwork) -> None:
    order = buy(network)
    usage = network.usage(order.iccid, timeout_s=TIMEOUT_S)
    assert usage.status == "active"
    (addon,) = usage.addons
    assert (addon.provider_plan_id, addon.remaining_mb) == (PLAN.provider_plan_id, PLAN.data_mb)
    assert order.provider_plan_id == PLAN.provider_plan_id
    assert order.placed_at.utcoffset() == timedelta(0)
    assert network.lpa(order.iccid, timeout_s=TIMEOUT_S).lpa.startswith("LPA:1$")


def test_each_order_brings_another_esim(far_side: FarSide, network: OrderNetwork) -> None:
    processes = [far_side.connect() for _ in range(3)]

    def order(number: int) -> Order:
        return buy(processes[number % 3], reference="link-1")

    with ThreadPoolExecutor(6) as pool:
        orders = [*pool.map(order, range(12))]
    assert len({each.iccid for each in orders}) == 12
    assert len({each.order_reference for each in orders}) == 12
    assert {*listed(network, orders[0])} == {each.order_reference for each in orders}


def test_orders_are_listed_oldest_first_and_only_those_of_the_plan(
    far_side: FarSide, network: OrderNetwork
) -> None:
    bought = []
    for plan in (PLAN, PLAN, OTHER_PLAN, PLAN):
        bought.append(buy(network, plan))
        far_side.forward(timedelta(seconds=10))
    first, second, other, last = (each.order_reference for each in bought)
    assert listed(network, bought[0]) == [first, second, last]
    assert listed(network, bought[1]) == [second, last]
    assert listed(far_side.connect(), bought[2]) == [last]
    assert listed(network, bought[0], OTHER_PLAN) == [other]
    assert listed(network, bought[0], until=bought[1].placed_at) == [first, second]
    (shown,) = network.orders(PLAN, *[bought[3].placed_at] * 2, timeout_s=TIMEOUT_S)
    assert shown.iccid == bought[3].iccid
    assert shown.cost in {None, bought[3].cost}
    assert shown.reference == ("link-1" if network.stores_reference else None)


def test_what_is_not_sold_is_refused_and_not_listed(network: OrderNetwork) -> None:
    first = buy(network)
    with pytest.raises(Rejected):
        buy(network, NOT_SOLD)
    assert listed(network, first, NOT_SOLD) == []


def test_an_order_past_its_time_out_has_an_outcome_that_settles(
    far_side: FarSide, network: OrderNetwork
) -> None:
    first, began = buy(network), time.monotonic()
    with pytest.raises(OutcomeUnknown):
        network.order(far_side.slow, "link-2", timeout_s=SENT_S)
    assert time.monotonic() - began < PATIENCE_S
    far_side.forward(network.settles_after)
    settled = listed(network, first, far_side.slow)
    far_side.forward(timedelta(hours=1))
    assert listed(network, first, far_side.slow) == settled
    assert len(settled) <= 1


def test_what_is_taken_back_is_so_once_and_for_all(network: OrderNetwork) -> None:
    order, kept = buy(network), buy(network)
    taken = [network.take_back(order, timeout_s=TIMEOUT_S) for _ in range(2)]
    assert taken[0] == taken[1]
    if taken[0]:
        with pytest.raises(Rejected):
            network.usage(order.iccid, timeout_s=TIMEOUT_S)
    assert network.usage(kept.iccid, timeout_s=TIMEOUT_S).addons
