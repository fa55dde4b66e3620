"""Changing the plans of a link: what is checked first, what it costs, what is left of a failure."""

from typing import Any
from uuid import uuid4

import pytest

from app.adapters.networks.simulated.network import Fault
from tests.app.http.buying import (
    BASIC,
    DISABLED,
    FREE,
    LINKS,
    MISSING,
    MORE,
    OTHER_PROFILE,
    UNSOLD,
    Buyer,
    buyer,
)
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, code_of, fields_of
from tests.plan_files import import_plans, plan

JSON = {"Content-Type": "application/json"}
BAD_BODY = {"data": b"{", "headers": JSON}
LARGE = {"data": b" " * 2_000_000, "headers": JSON}
FOREIGN = {"data": b"x", "headers": {"Content-Type": "text/plain"}}
NO_INPUT = {"json": {}}
BAD_KEY = {"json": {"add": [MISSING]}, "headers": {"Idempotency-Key": "two words"}}
# By price; those that work in the country of the free plan come first.
SOLD = [FREE, *sorted(fault.value for fault in Fault), MORE, BASIC]


@pytest.fixture
def shop(service: Service) -> Buyer:
    return buyer(service)


@pytest.fixture(scope="module")
def acme(service: Service) -> Buyer:
    return buyer(service)


@pytest.fixture(scope="module")
def link(acme: Buyer) -> dict[str, Any]:
    """A link whose plans no test changes."""
    return acme.link(FREE)


def plans_of(shop: Buyer, link: dict[str, Any]) -> list[str]:
    return [each["plan_name"] for each in shop.read(link).json["data"]["activations"]]


def first_of(link: dict[str, Any]) -> str:
    return str(link["activations"][0]["id"])


def test_plans_are_added_in_order_each_for_its_price(shop: Buyer) -> None:
    link = shop.link()
    reply = shop.change(link, add=[MORE, BASIC, FREE, MORE])
    assert reply.status_code == 200
    changed = reply.json["data"]
    assert (changed["amount_charged"], changed["currency"]) == ("8.50", "USD")
    assert [each["plan_name"] for each in changed["activations"]] == [
        BASIC,
        MORE,
        BASIC,
        FREE,
        MORE,
    ]
    assert changed["data_remaining_mb"] == 4_000.0
    assert "Idempotency-Replayed" not in reply.headers
    assert "activation_url" not in changed
    assert shop.balance() == "87.00"
    kinds = [(entry["kind"], entry["amount"]) for entry in shop.transactions()[:3]]
    assert kinds == [("topup", "2.00"), ("topup", "4.50"), ("topup", "2.00")]
    again = shop.read(link).json["data"]
    assert again["activations"] == changed["activations"]


@pytest.mark.any_database
def test_a_removal_gives_no_money_back_and_is_read_at_once(shop: Buyer) -> None:
    link = shop.link()
    reply = shop.change(link, remove=[first_of(link)], add=[MORE])
    assert reply.json["data"]["amount_charged"] == "2.00"
    assert plans_of(shop, link) == [MORE]
    left = shop.read(link).json["data"]
    reply = shop.change(link, remove=[first_of(left)])
    assert (reply.status_code, reply.json["data"]["amount_charged"]) == (200, "0.00")
    bare = shop.read(link).json["data"]
    assert (bare["activations"], bare["coverage_data"]) == ([], [])
    assert (bare["data_remaining_mb"], bare["status"]) == (0.0, "active")
    assert shop.balance() == "93.50"


@pytest.mark.any_database
def test_a_link_takes_its_iccid_here_too(shop: Buyer) -> None:
    link = shop.link()
    body = {"add": [shop.plans[FREE]]}
    assert shop.open("PUT", f"{LINKS}/{link['iccid']}/plans", json=body).status_code == 200
    assert plans_of(shop, link) == [BASIC, FREE]


@pytest.mark.any_database
def test_everything_is_checked_before_anything_is_done(shop: Buyer) -> None:
    link, other = shop.link(), shop.link(FREE)
    shop.change(link, add=[FREE], remove=[first_of(link)])
    now = shop.read(link).json["data"]
    wrong = [first_of(link), first_of(other), first_of(now), MISSING]
    add = [BASIC, OTHER_PROFILE, UNSOLD, DISABLED]
    reply = shop.change(link, remove=wrong, add=add)
    assert set(fields_of(reply)) == {"remove.0", "remove.1", "remove.3", "add.1", "add.2", "add.3"}
    assert shop.read(link).json["data"]["activations"] == now["activations"]
    assert shop.balance() == "95.50"


@pytest.mark.any_database
def test_a_plan_of_another_organization_cannot_be_added(service: Service, shop: Buyer) -> None:
    link = shop.link(FREE)
    foreign = buyer(service).plans[FREE]
    body = {"add": [foreign]}
    reply = shop.open("PUT", f"{LINKS}/{link['id']}/plans", json=body)
    assert list(fields_of(reply)) == ["add.0"]


WRONG: list[tuple[object, set[str]]] = [
    ({}, {"remove", "add"}),
    ({"remove": [], "add": []}, {"remove", "add"}),
    ({"remove": None}, {"remove"}),
    ({"add": MISSING}, {"add"}),
    ({"add": {}}, {"add"}),
    ({"add": ["x", MISSING, 5, None]}, {"add.0", "add.2", "add.3"}),
    ({"remove": ["x"], "add": [[]]}, {"remove.0", "add.0"}),
    ({"remove": [MISSING, MISSING.upper()]}, {"remove.1"}),
    ({"remove": [MISSING.replace("-", "")]}, {"remove.0"}),
    ({"add": [MISSING] * 11}, {"add"}),
    ({"add": ["x"] * 1000}, {"add"}),
    ({"remove": [MISSING], "add": [MISSING] * 10}, {"remove", "add"}),
    ({"add": [MISSING] * 10}, {f"add.{index}" for index in range(10)}),
    ({"add": [MISSING], "plan": 1}, {"plan"}),
    ([], {"remove", "add"}),
]


@pytest.mark.any_database
def test_a_wrong_body_is_refused_by_field(acme: Buyer, link: dict[str, Any]) -> None:
    for body, fields in WRONG:
        reply = acme.open("PUT", f"{LINKS}/{link['id']}/plans", json=body)
        assert set(fields_of(reply)) == fields, body


@pytest.mark.any_database
@pytest.mark.parametrize("identifier", [MISSING, "none", "1" * 19])
def test_the_link_comes_before_the_body(acme: Buyer, identifier: str) -> None:
    path = f"{LINKS}/{identifier}/plans"
    for wrong in (BAD_BODY, LARGE, FOREIGN, NO_INPUT, BAD_KEY):
        assert code_of(acme.open("PUT", path, **wrong)) == "NOT_FOUND"
        assert acme.service.client.put(path, **wrong).status_code == 401


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("wrong", "status"),
    [(BAD_BODY, 400), (LARGE, 413), (FOREIGN, 415), (NO_INPUT, 422), (BAD_KEY, 422)],
)
def test_then_the_body_comes(
    acme: Buyer, link: dict[str, Any], wrong: dict[str, Any], status: int
) -> None:
    assert acme.open("PUT", f"{LINKS}/{link['id']}/plans", **wrong).status_code == status


@pytest.mark.any_database
def test_the_body_comes_before_the_key_and_that_before_the_plans(
    acme: Buyer, link: dict[str, Any]
) -> None:
    path = f"{LINKS}/{link['id']}/plans"
    key = {"Idempotency-Key": "two words"}
    assert "add.0" in fields_of(acme.open("PUT", path, json={"add": ["x"]}, headers=key))
    reply = acme.open("PUT", path, json={"add": [MISSING]}, headers=key)
    assert list(fields_of(reply)) == ["Idempotency-Key"]


@pytest.mark.any_database
def test_the_plans_come_before_the_balance(service: Service) -> None:
    shop = buyer(service, "1.00")
    link = shop.link(FREE)
    assert list(fields_of(shop.change(link, add=[BASIC, OTHER_PROFILE]))) == ["add.1"]


@pytest.mark.any_database
def test_a_sum_that_is_short_is_a_402_and_nothing_is_done(service: Service) -> None:
    shop = buyer(service, "4.00")
    link = shop.link(FREE)
    reply = shop.change(link, remove=[first_of(link)], add=[MORE, MORE, MORE])
    assert (reply.status_code, code_of(reply)) == (402, "INSUFFICIENT_BALANCE")
    details = {"required": "6.00", "available": "4.00", "currency": "USD"}
    assert reply.json["error"]["details"] == details
    assert plans_of(shop, link) == [FREE]
    assert shop.balance() == "4.00"


@pytest.mark.any_database
def test_without_a_wallet_only_what_is_free_can_be_added(service: Service) -> None:
    shop = buyer(service, None)
    link = shop.link(FREE)
    assert shop.change(link, add=[FREE]).status_code == 200
    assert code_of(shop.change(link, add=[FREE, MORE])) == "BILLING_NOT_CONFIGURED"


@pytest.mark.parametrize(
    ("fault", "code", "reason"),
    [
        (Fault.NO_ENDPOINT, "PROVISIONING_FAILED", "network_rejected"),
        (Fault.PROVIDER_ERROR, "PROVISIONING_ERROR", "network_unavailable"),
        (Fault.NO_ESIM, "PROVISIONING_ERROR", "network_rejected"),
    ],
)
def test_at_the_first_failure_the_rest_is_paid_back(
    shop: Buyer, fault: Fault, code: str, reason: str
) -> None:
    link = shop.link()
    reply = shop.change(link, remove=[first_of(link)], add=[MORE, fault.value, BASIC])
    assert (reply.status_code, code_of(reply)) == (502, code)
    assert reply.json["error"]["details"] == {
        "reason": reason,
        "refunded": "5.50",
        "removed": [first_of(link)],
        "added": [shop.plans[MORE]],
        "retryable": reason == "network_unavailable",
    }
    assert plans_of(shop, link) == [MORE]
    assert shop.balance() == "93.50"
    entries = [(entry["kind"], entry["amount"]) for entry in shop.transactions()[:5]]
    assert entries[:2] == [("refund", "4.50"), ("refund", "1.00")]
    assert shop.change(link, add=[FREE]).status_code == 200


@pytest.mark.any_database
def test_an_addition_whose_reply_was_lost_is_found(shop: Buyer) -> None:
    link = shop.link(FREE)
    reply = shop.change(link, add=[Fault.LOST_REPLY.value, MORE])
    assert (reply.status_code, reply.json["data"]["amount_charged"]) == (200, "3.00")
    assert plans_of(shop, link) == [FREE, Fault.LOST_REPLY.value, MORE]


@pytest.mark.any_database
def test_a_link_can_be_cut_off_by_a_top_up(shop: Buyer) -> None:
    link = shop.link(FREE)
    reply = shop.change(link, add=[Fault.UNREACHABLE.value])
    assert (reply.status_code, reply.json["meta"]["stale"]) == (200, True)
    assert len(reply.json["data"]["activations"]) == 2


def test_an_addition_that_is_too_slow_is_paid_back_at_the_deadline(
    make_service: MakeService,
) -> None:
    shop = buyer(make_service(PROVISIONING_DEADLINE_S="1").start(), "10.00")
    link = shop.link(FREE)
    reply = shop.change(link, add=[MORE, Fault.SLOW.value, BASIC])
    assert (reply.status_code, code_of(reply)) == (502, "PROVISIONING_ERROR")
    details = reply.json["error"]["details"]
    assert (details["refunded"], details["added"]) == ("5.50", [shop.plans[MORE]])
    assert (details["reason"], details["retryable"]) == ("deadline", True)
    assert shop.balance() == "8.00"
    assert plans_of(shop, link) == [FREE, MORE]
    busy = shop.change(link, add=[FREE])  # The late addition may still come.
    assert (busy.status_code, code_of(busy)) == (409, "LINK_BUSY")


@pytest.mark.any_database
def test_the_plans_of_a_link_are_read_with_the_link(acme: Buyer, link: dict[str, Any]) -> None:
    for method in ("GET", "POST", "DELETE"):
        reply = acme.open(method, f"{LINKS}/{link['id']}/plans")
        assert (reply.status_code, code_of(reply)) == (405, "METHOD_NOT_ALLOWED")
        assert reply.headers["Allow"] == "PUT"


def offers(shop: Buyer, link: dict[str, Any], **query: str) -> list[str]:
    """Return what is offered of the plans of one's own: other tests sell plans to everybody."""
    reply = shop.read(link, "/topup-plans", **query)
    assert reply.status_code == 200, reply.text
    own = {*shop.plans.values()}
    return [each["name"] for each in reply.json["data"] if each["id"] in own]


@pytest.mark.any_database
def test_what_can_be_added_runs_on_the_profile_of_the_link(
    acme: Buyer, link: dict[str, Any]
) -> None:
    offered = acme.read(link, "/topup-plans").json["data"]
    assert offers(acme, link) == SOLD
    listed = {each["id"]: each for each in acme.get("/v1/plans").json["data"]["data"]}
    assert all(each == listed[each["id"]] for each in offered)


@pytest.mark.any_database
def test_whatever_is_offered_can_be_added_at_once(service: Service, shop: Buyer) -> None:
    link = shop.link(FREE)
    new = plan("new", organization_id=str(shop.id), retail_price="0.00")
    import_plans(service.container, new)
    offered = {each["name"]: each["id"] for each in shop.read(link, "/topup-plans").json["data"]}
    body = {"add": [offered["new"]]}
    assert shop.open("PUT", f"{LINKS}/{link['id']}/plans", json=body).status_code == 200


@pytest.mark.any_database
def test_a_link_without_a_profile_may_be_offered_every_plan(shop: Buyer) -> None:
    plan_id, own = str(uuid4()), {"organization_id": str(shop.id), "retail_price": "0.00"}
    import_plans(shop.service.container, plan("any", id=plan_id, sponsor_profiles=[], **own))
    shop.service.until(lambda: shop.get(f"/v1/plans/{plan_id}").status_code == 200)
    reply = shop.post(LINKS, json={"plan_id": plan_id})
    assert reply.json["data"]["sponsor_profile"] is None
    offered = shop.read(reply.json["data"], "/topup-plans").json["data"]
    assert {OTHER_PROFILE, UNSOLD, "any"} < {each["name"] for each in offered}
    assert DISABLED not in {each["name"] for each in offered}


@pytest.mark.any_database
def test_what_works_where_the_link_works_is_offered_first_then_the_cheapest(shop: Buyer) -> None:
    link = shop.link(MORE)  # Works in FR only.
    offered = offers(shop, link)
    assert offered[:2] == [MORE, BASIC]
    assert offered[2] == FREE
    assert offered[3:] == sorted(fault.value for fault in Fault)
    shop.change(link, add=[Fault.LOST_REPLY.value])  # Of US, so these are near now as well.
    assert offers(shop, link) == [*sorted(fault.value for fault in Fault), MORE, BASIC, FREE]


@pytest.mark.any_database
def test_what_is_offered_can_be_cut_to_a_country(acme: Buyer, link: dict[str, Any]) -> None:
    assert offers(acme, link, country="fr") == offers(acme, link, country="FR") == [MORE, BASIC]
    assert offers(acme, link, country="MC") == [BASIC]
    assert offers(acme, link, country="JP") == []
    assert offers(acme, link, country="") == SOLD
    assert list(fields_of(acme.read(link, "/topup-plans", country="UK"))) == ["country"]
