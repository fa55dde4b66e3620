"""Airalo in its own words: what is told apart, and what comes of it."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from app.adapters.networks.airalo import network as adapter
from app.adapters.networks.airalo.network import Airalo
from app.adapters.networks.airalo.wire import Placed, Sim, orders_of
from app.adapters.remote.exchange import Reply
from domain.catalogue.supplied import NOTICES, OddEntry, SuppliedCountry, SuppliedPlan
from domain.cost import Cost, ProviderBalance
from domain.links.network import NoActivationCode, Order
from domain.provider_errors import NotAnswered, OutcomeUnknown, ProviderError, Rejected, Unavailable
from tests.contracts.esim_networks import OTHER_PLAN, PLAN, TIMEOUT_S, AiraloSide
from tests.installation import SetClock
from tests.support.providers.airalo import AiraloServer
from tests.support.providers.server import FaultKind, Request


def buy(network: Airalo, reference: str = "link-1") -> Order:
    return network.order(PLAN, reference, timeout_s=TIMEOUT_S)


FINAL = dict.fromkeys((11, 23, 33, 34, 43), Rejected)


@pytest.mark.parametrize(
    ("code", "expected"), {**FINAL, 13: Unavailable, 53: OutcomeUnknown}.items()
)
def test_a_code_says_whether_it_is_final(
    network: Airalo, server: AiraloServer, code: int, expected: type[ProviderError]
) -> None:
    order = buy(network)
    server.refuses = code
    with pytest.raises(expected) as ordering:
        buy(network)
    with pytest.raises(expected) as adding:
        network.add_plan(order.iccid, OTHER_PLAN, "c-1", timeout_s=TIMEOUT_S)
    assert {type(ordering.value), type(adding.value)} == {expected}


def test_the_reply_of_another_call_is_no_outcome(network: Airalo, server: AiraloServer) -> None:
    order = buy(network)
    for other in ({"description": "link-2"}, {"package_id": "x"}, {"quantity": 2}, {"sims": []}):
        server.tells = other
        with pytest.raises(OutcomeUnknown):
            buy(network)
    server.tells = {"description": "Topup (8945)"}
    with pytest.raises(OutcomeUnknown):
        network.add_plan(order.iccid, OTHER_PLAN, "c-1", timeout_s=TIMEOUT_S)


def test_any_success_of_an_order_is_one(network: Airalo, server: AiraloServer) -> None:
    server.done = 201
    assert buy(network).iccid == server.sales[0].iccid
    server.done, server.tells = 202, {"code": None}
    with pytest.raises(OutcomeUnknown):
        buy(network)


def test_what_people_have_ordered_hides_no_order_of_ours(
    network: Airalo, server: AiraloServer, clock: SetClock
) -> None:
    reference = str(uuid4())
    bought = buy(network, reference)
    server.by_hand = [
        {"code": "20260301-1", "package_id": None, "description": "for a fair"},
        {"quantity": "2"},
    ]
    found = network.orders(PLAN, clock.now, clock.now, timeout_s=TIMEOUT_S)
    assert [each.order_reference for each in found] == [bought.order_reference]
    for odd in ({"description": reference, "quantity": "1"}, {"description": 7}, 7):
        server.by_hand = [odd]
        with pytest.raises(Unavailable):
            network.orders(PLAN, clock.now, clock.now, timeout_s=TIMEOUT_S)


def test_an_order_says_what_the_document_asks_for_and_costs_what_its_reply_told(
    network: Airalo, server: AiraloServer
) -> None:
    order = buy(network)
    asked = {"quantity": 1, "type": "sim", "description": "link-1"}
    assert server.asked("order")[0].json() == {**asked, "package_id": PLAN.provider_plan_id}
    server.offer(OTHER_PLAN.provider_plan_id, "6.10", gb=3)
    addon = network.add_plan(order.iccid, OTHER_PLAN, "c-1", timeout_s=TIMEOUT_S)
    first, second = (each.code for each in server.sales)
    assert order.cost == Cost(2_300_000, "USD", first, estimated=False)
    assert addon.cost == Cost(6_100_000, "USD", second, estimated=False)
    assert network.balance(timeout_s=TIMEOUT_S) == ProviderBalance(991_600_000, "USD")


def test_orders_are_looked_through_page_by_page(
    network: Airalo, server: AiraloServer, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "ORDERS_PER_PAGE", 2)
    clock.now = clock.now.replace(microsecond=700_000)  # The list tells seconds.
    bought = [buy(network, f"link-{number}") for number in range(5)]
    network.add_plan(bought[0].iccid, PLAN, "c-1", timeout_s=TIMEOUT_S)
    found = network.orders(PLAN, clock.now, clock.now, timeout_s=TIMEOUT_S)
    assert [each.reference for each in found] == [f"link-{number}" for number in range(5)]
    assert len(server.asked("orders")) == 3
    monkeypatch.setattr(adapter, "ORDER_PAGES_MAX", 2)
    with pytest.raises(Unavailable):
        network.orders(PLAN, clock.now, clock.now, timeout_s=TIMEOUT_S)


@pytest.mark.usefixtures("server")
def test_the_catalogue_is_told_in_our_terms_also_where_its_areas_are_numbered(
    network: Airalo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "AREAS_PER_PAGE", 1)
    first, second, _ = network.supplied(timeout_s=TIMEOUT_S)
    where, cost = (SuppliedCountry("DE"), SuppliedCountry("FR")), Cost(2_300_000, "USD")
    name = "Brand 1 GB - 7 Days"
    assert first == SuppliedPlan(PLAN.provider_plan_id, name, 1_000, 7, where, cost)
    assert (second.provider_plan_id, second.data_mb) == (OTHER_PLAN.provider_plan_id, 3_000)


def test_the_catalogue_tells_the_networks_and_what_a_traveller_must_know(
    network: Airalo, server: AiraloServer
) -> None:
    orange = [{"name": "Orange", "types": ["4G", "5G"]}, {"name": "Free", "types": None}]
    server.operator = {
        "coverages": [{"name": "France", "code": "FR", "networks": orange}, {"name": "DE"}, 7],
        "is_kyc_verify": True,
        "activation_policy": "installation",
        "plan_type": "data-voice-text",
        "apn_type": "manual",
        "rechargeability": True,
    }
    first, *_, odd = network.supplied(timeout_s=TIMEOUT_S)
    assert isinstance(first, SuppliedPlan)
    assert first.notices == NOTICES
    germany, france = first.coverage
    assert (germany.operators, france.operators) == ((), (("Orange", ("4G", "5G")), ("Free", ())))
    assert isinstance(odd, OddEntry)
    assert "coverages[2]" in odd.reason
    kyc = {"is_kyc_verify": "1", "activation_policy": "first-usage", "plan_type": "data"}
    server.operator = {**kyc, "apn_type": "automatic"}
    first, *_ = network.supplied(timeout_s=TIMEOUT_S)
    assert isinstance(first, SuppliedPlan)
    assert first.notices == ("identity_check",)


def test_an_esim_takes_what_its_own_list_has(network: Airalo, server: AiraloServer) -> None:
    iccid, wanted = buy(network).iccid, [OTHER_PLAN.provider_plan_id, PLAN.provider_plan_id]

    def taken(of: str = iccid) -> set[str]:
        return {*(network.topups(of, wanted, timeout_s=TIMEOUT_S))}

    assert taken() == {*wanted}
    server.foreign = OTHER_PLAN.provider_plan_id
    assert taken() == {PLAN.provider_plan_id}
    server.rechargeable = False
    assert taken() == taken("8945000000000009999") == set()


def test_one_thread_logs_in_for_all_again_with_an_old_token_and_not_at_once_after_a_refusal(
    side: AiraloSide, network: Airalo, server: AiraloServer
) -> None:
    with ThreadPoolExecutor(6) as pool:
        assert len({each.iccid for each in pool.map(lambda _: buy(network), range(6))}) == 6
    assert len(server.tokens) == 1
    server.tokens[:] = ["another"]
    buy(network)
    assert (len(server.tokens), len(server.sales), len(server.asked("token"))) == (2, 7, 2)
    wrong = side.connect("wrong")
    for _ in range(3):
        with pytest.raises(Unavailable):
            wrong.probe(timeout_s=TIMEOUT_S)
    assert len(server.asked("token")) == 3


def test_a_package_begins_with_its_first_use_and_ends_after_its_days(
    network: Airalo, server: AiraloServer, clock: SetClock
) -> None:
    order = buy(network)
    began = clock.now
    server.use(order.iccid, 512)
    clock.forward(days=8)
    usage = network.usage(order.iccid, timeout_s=TIMEOUT_S)
    (addon,) = usage.addons
    assert (addon.used_mb, addon.remaining_mb) == (500, 500)
    assert (usage.first_used_at, addon.expires_at) == (began, began + timedelta(days=7))
    server.use(order.iccid, 512)
    assert network.usage(order.iccid, timeout_s=TIMEOUT_S).addons[0].remaining_mb == 0


def test_an_activation_code_is_the_qr_code_or_its_two_parts_beside_what_a_phone_asks_for(
    network: Airalo, server: AiraloServer
) -> None:
    parts = Sim("8945", lpa="lpa.example", matching_id="X")
    assert parts.activation_code == "LPA:1$lpa.example$X"
    assert Sim("8945", qrcode="LPA:1$other$Y").activation_code == "LPA:1$other$Y"
    assert Sim("8945").activation_code is None
    iccid = buy(network).iccid
    for code, known in {"4711-A": "4711-A", 1234: "1234", " ": None, None: None}.items():
        server.tells_of_esims = {"confirmation_code": code}
        assert network.lpa(iccid, timeout_s=TIMEOUT_S).confirmation_code == known
    server.tells_of_esims = {"qrcode": None, "lpa": "rsp.example", "matching_id": None}
    with pytest.raises(NoActivationCode):
        network.lpa(iccid, timeout_s=TIMEOUT_S)


# The forms of the provider's document, shortened to what is read.
LISTED = b"""{"data": [{"id": 9666, "created_at": "2023-02-27 14:09:55", "code": "20230227-009666",
 "description": null, "type": "sim", "package_id": "kallur-digital-7days-1gb", "quantity": 1,
 "esim_type": "Prepaid", "validity": "7", "price": "9.50", "data": "1 GB", "currency": "USD",
 "sims": [{"id": 11047, "iccid": "891000000000009125", "lpa": "lpa.airalo.com", "imsis": null,
 "matching_id": "TEST", "qrcode": "LPA:1$lpa.airalo.com$TEST"}],
 "status": {"name": "%s", "slug": "%s"}}],
 "meta": {"message": "success", "current_page": 1, "last_page": 1, "per_page": "50"}}"""
DISCOUNTED = b"""{"id": 619, "code": "20251118-000619", "package_id": "change-7days-1gb-topup",
 "currency": "USD", "quantity": 1, "type": "topup", "description": "Topup (873000000000042542)",
 "price": 10, "pricing_model": "discount_pricing", "discount_percentage": 10,
 "discount_amount": 1, "unit_paid_price": 9, "total_amount_paid": 9, "net_price": null,
 "created_at": "2025-11-18 13:37:07"}"""


@pytest.mark.parametrize(("name", "is_read"), [(b"completed", True), (b"refunded", False)])
def test_an_order_of_the_list_counts_when_it_is_completed(name: bytes, *, is_read: bool) -> None:
    (listed,), _ = orders_of(Reply(200, {}, LISTED % (name, name)))
    order = listed.read("kallur-digital-7days-1gb")
    assert (order is not None) == is_read
    if order is not None:
        assert (order.iccid, order.reference, order.cost) == ("891000000000009125", None, None)
        assert order.placed_at.isoformat() == "2023-02-27T14:09:55+00:00"


def test_what_is_paid_with_a_discount_is_the_cost() -> None:
    placed = msgspec.json.decode(DISCOUNTED, type=Placed)
    assert placed.tops_up("change-7days-1gb", "873000000000042542", "c-1")
    assert not placed.tops_up("change-7days-1gb", "873000000000042543", "c-1")
    assert placed.cost == Cost(9_000_000, "USD", "20251118-000619", estimated=False)


def test_a_used_up_package_needs_no_number_and_any_other_needs_one(
    network: Airalo, server: AiraloServer
) -> None:
    iccid, status = buy(network).iccid, "FINISHED"

    def without_a_number(request: Request, told: Any) -> Any:
        if request.route == "packages":
            told["data"][0] |= {"remaining": None, "status": status}
        return told

    server.mangle = without_a_number
    (used_up,) = network.usage(iccid, timeout_s=TIMEOUT_S).addons
    assert (used_up.remaining_mb, used_up.used_mb) == (0.0, 1_000.0)
    status = "ACTIVE"
    with pytest.raises(NotAnswered, match="remaining"):
        network.usage(iccid, timeout_s=TIMEOUT_S)


def test_whoever_reads_an_esim_too_often_keeps_nobody_from_buying(
    network: Airalo, server: AiraloServer
) -> None:
    order = buy(network)
    server.fault(FaultKind.RATE_LIMITED, on="packages", headers={"Retry-After": "60"})
    with pytest.raises(Unavailable):
        network.usage(order.iccid, timeout_s=TIMEOUT_S)
    assert buy(network, "link-2").reference == "link-2"
