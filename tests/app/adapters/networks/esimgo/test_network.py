"""The adapter of eSIM Go against its scripted server: what the port's contract does not ask."""

from datetime import timedelta
from typing import Any

import pytest

from app.adapters.networks.esimgo import network as esimgo
from app.adapters.networks.esimgo.network import CONNECTED_FOR, EsimGo
from domain.cost import Cost
from domain.links.lost_order import APART
from domain.links.network import NoSuchEndpoint, Order, ProviderPlan
from domain.provider_errors import Rejected, Unavailable
from tests.contracts.esim_networks import OTHER_PLAN, PLAN, TIMEOUT_S, EsimGoSide
from tests.installation import SetClock
from tests.support.providers.esimgo import MB, EsimGoServer


def bought(network: EsimGo, plan: ProviderPlan = PLAN) -> Order:
    return network.order(plan, "link-1", timeout_s=TIMEOUT_S)


def test_an_order_is_found_on_any_page_and_however_many_were_placed_since(
    network: EsimGo, server: EsimGoServer, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(esimgo, "ORDERS_PER_PAGE", 2)
    since = clock.now
    sold = []
    for _ in range(5):
        sold.append(bought(network))
        clock.forward(seconds=10)

    def found(first: timedelta, last: timedelta) -> list[Order]:
        return [*network.orders(PLAN, since + first, since + last, timeout_s=TIMEOUT_S)]

    moment, later = timedelta(seconds=20, milliseconds=1), timedelta(seconds=50)
    assert found(timedelta(0), later) == sold
    assert len(server.asked("orders")) == 3
    assert (found(moment, later), found(timedelta(0), moment)) == (sold[3:], sold[:3])
    monkeypatch.setattr(esimgo, "ORDER_PAGES_MAX", 2)
    assert found(timedelta(0), timedelta(seconds=5)) == sold[:1]
    with pytest.raises(Unavailable):
        found(timedelta(0), later)


@pytest.mark.parametrize("behind_s", [0, 1, 3, 59])
def test_an_order_is_found_where_the_clock_of_the_network_is_behind(
    network: EsimGo, server: EsimGoServer, clock: SetClock, behind_s: int
) -> None:
    server.clock = lambda: clock.now - timedelta(seconds=behind_s)
    since = clock.now
    lost = bought(network)
    clock.forward(seconds=5)
    found = network.orders(PLAN, since - APART, clock.now, timeout_s=TIMEOUT_S)
    assert [each.iccid for each in found] == [lost.iccid]
    assert abs(found[0].placed_at - since) <= APART


ODD: dict[str, Any] = {"orderReference": 7, "status": None, "order": "none"}


@pytest.mark.parametrize(
    ("odd", "hides"),
    [
        ({}, True),
        ({"createdDate": "2020-01-01T00:00:00Z"}, False),
        ({"order": [{"item": "another", "quantity": "one"}]}, False),
        ({"order": [{"item": PLAN.provider_plan_id, "quantity": "one"}]}, True),
        ({"order": [{"item": None}], "createdDate": 7}, True),
        ({"order": []}, False),
    ],
)
def test_an_order_that_cannot_be_read_hides_others_only_if_it_may_be_the_one(
    network: EsimGo, server: EsimGoServer, clock: SetClock, odd: dict[str, Any], *, hides: bool
) -> None:
    lost = bought(network)
    server.odd_orders.append(ODD | odd)

    def found() -> list[Order]:
        return [*network.orders(PLAN, clock.now - APART, clock.now, timeout_s=TIMEOUT_S)]

    if hides:
        with pytest.raises(Unavailable):
            found()
    else:
        assert found() == [lost]


def test_an_esim_is_connected_when_its_network_has_just_heard_of_it(
    network: EsimGo, server: EsimGoServer, clock: SetClock
) -> None:
    iccid = bought(network).iccid
    assert not network.status(iccid, timeout_s=TIMEOUT_S).connected
    server.use(iccid, MB)
    seen_at = clock.now
    status = network.status(iccid, timeout_s=TIMEOUT_S)
    assert status.connected
    assert status.network is not None
    assert (status.network.country_code, status.network.operator) == ("FR", "Orange France")
    network.suspend(iccid, timeout_s=TIMEOUT_S)
    assert not network.status(iccid, timeout_s=TIMEOUT_S).connected
    network.resume(iccid, timeout_s=TIMEOUT_S)
    clock.forward(seconds=CONNECTED_FOR.total_seconds() + 1)
    status = network.status(iccid, timeout_s=TIMEOUT_S)
    assert (status.connected, status.network, status.last_seen_at) == (False, None, seen_at)


def test_a_suspension_by_policy_cannot_be_lifted(network: EsimGo, server: EsimGoServer) -> None:
    iccid = bought(network).iccid
    server.suspend_by_policy(iccid)
    with pytest.raises(Rejected):
        network.resume(iccid, timeout_s=TIMEOUT_S)
    assert network.usage(iccid, timeout_s=TIMEOUT_S).status == "suspended"
    network.suspend(iccid, timeout_s=TIMEOUT_S)


def test_the_last_bundle_of_an_esim_that_nobody_has_installed_is_left(
    network: EsimGo, server: EsimGoServer
) -> None:
    iccid = bought(network).iccid
    (addon,) = network.usage(iccid, timeout_s=TIMEOUT_S).addons
    with pytest.raises(Rejected):
        network.remove_plan(iccid, addon.addon_id, timeout_s=TIMEOUT_S)
    server.install(iccid)
    network.remove_plan(iccid, addon.addon_id, timeout_s=TIMEOUT_S)
    assert server.held == {iccid}
    assert network.usage(iccid, timeout_s=TIMEOUT_S).addons == []


def test_what_was_used_or_has_another_bundle_is_not_taken_back(
    network: EsimGo, server: EsimGoServer
) -> None:
    used, topped_up, doubled, replaced = orders = [bought(network) for _ in range(4)]
    server.use(used.iccid, MB)
    network.add_plan(topped_up.iccid, OTHER_PLAN, "change-1", timeout_s=TIMEOUT_S)
    network.add_plan(doubled.iccid, PLAN, "change-2", timeout_s=TIMEOUT_S)
    (own,) = network.usage(replaced.iccid, timeout_s=TIMEOUT_S).addons
    server.install(replaced.iccid)
    network.remove_plan(replaced.iccid, own.addon_id, timeout_s=TIMEOUT_S)
    network.add_plan(replaced.iccid, OTHER_PLAN, "change-3", timeout_s=TIMEOUT_S)
    assert [network.take_back(each, timeout_s=TIMEOUT_S) for each in orders] == [False] * 4
    assert server.held == {each.iccid for each in orders}


def test_what_the_provider_or_our_account_does_not_give_back_is_kept(
    network: EsimGo, side: EsimGoSide, server: EsimGoServer
) -> None:
    without = side.connect(refunds=False)
    kept, lost = bought(without), bought(network)
    assert not without.take_back(kept, timeout_s=TIMEOUT_S)
    assert "cancel" not in without.capabilities
    assert "cancel" in side.connect(refunds=True).capabilities
    server.keeps = True
    assert not network.take_back(lost, timeout_s=TIMEOUT_S)
    server.install(lost.iccid)
    with pytest.raises(Rejected):
        network.remove_plan(lost.iccid, "200000002", timeout_s=TIMEOUT_S)
    assert server.held == {kept.iccid, lost.iccid}
    server.keeps, server.refunds = False, False
    assert not network.take_back(bought(network), timeout_s=TIMEOUT_S)


def test_a_refused_key_is_not_taken_for_an_unknown_esim(
    network: EsimGo, side: EsimGoSide, server: EsimGoServer
) -> None:
    iccid, strange = bought(network).iccid, side.connect(key="esimgo-key-wrong")
    for read in (strange.usage, strange.status, strange.lpa):
        with pytest.raises(Unavailable) as caught:
            read(iccid, timeout_s=TIMEOUT_S)
        assert "ESIMGO_API_KEY" in str(caught.value)
    for change in (strange.suspend, strange.resume):
        with pytest.raises(Unavailable):
            change(iccid, timeout_s=TIMEOUT_S)
    with pytest.raises(Unavailable):
        bought(strange)
    with pytest.raises(NoSuchEndpoint):
        network.usage("8900000000000000000", timeout_s=TIMEOUT_S)
    assert len(server.sales) == 1


def test_the_catalogue_is_read_page_by_page(network: EsimGo, server: EsimGoServer) -> None:
    for number in range(150):
        server.offer(f"esim_{number}")
    server.offer("esim_UL", "12.50", unlimited=True, roaming=())
    plans = [*network.supplied(timeout_s=TIMEOUT_S)]
    assert [plan.provider_plan_id for plan in plans] == [*server.offered]
    assert len(server.asked("catalogue")) == 4
    first, last = plans[0], plans[-1]
    assert (first.data_mb, first.validity_days) == (1_000, 7)
    assert [each.country_code for each in first.coverage] == ["DE", "FR", "IT"]
    assert first.coverage[1].operators == (("Mobile FR", ("4G", "5G")),)
    assert (last.data_mb, last.cost) == (None, Cost(12_500_000, "USD"))


def test_a_late_copy_of_a_reply_is_not_taken_for_the_answer_about_another_esim(
    network: EsimGo, server: EsimGoServer
) -> None:
    iccids = [bought(network).iccid for _ in range(2)]
    codes = {each: network.lpa(each, timeout_s=TIMEOUT_S) for each in iccids}
    server.repeats = True
    for iccid in iccids * 3:
        try:
            assert network.lpa(iccid, timeout_s=TIMEOUT_S) == codes[iccid]
        except Unavailable:
            continue


def test_an_order_is_sent_once_unvalidated_and_placed_under_any_status_of_success(
    network: EsimGo, server: EsimGoServer
) -> None:
    for status in (201, 202, 206):
        server.done_with = status
        assert bought(network).iccid in server.held
    assert len(server.requests) == 3
    sent = server.requests[0].json()
    assert (sent["type"], sent["order"][0]["allowReassign"]) == ("transaction", False)
