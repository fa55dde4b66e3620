"""A link and a change of its plans under an Idempotency-Key: one outcome, one charge."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from werkzeug.test import TestResponse

from app.providers.simulated_network.script import Fault
from domain.activation import BoughtPlan
from domain.link import Link, link_id
from tests.app.http.buying import BASIC, FREE, LINKS, MISSING, MORE, UNSOLD, Buyer, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, code_of, fields_of

REPLAYED = "Idempotency-Replayed"


@pytest.fixture
def shop(service: Service) -> Buyer:
    return buyer(service)


def bought(reply: TestResponse) -> dict[str, Any]:
    """Return what a replay must repeat: not what the network tells anew."""
    assert reply.status_code in {200, 201}, reply.text
    return {
        name: reply.json["data"][name]
        for name in ("id", "iccid", "created_at", "amount_charged", "currency")
    }


def error_of(reply: TestResponse) -> tuple[int, dict[str, Any]]:
    return reply.status_code, reply.json["error"]


def test_a_link_is_bought_once(shop: Buyer) -> None:
    first, again = shop.create(key="k", name="Van"), shop.create(key="k", name="Van")
    assert REPLAYED not in first.headers
    assert again.headers[REPLAYED] == "true"
    assert first.status_code == again.status_code == 201
    assert first.headers["Location"] == again.headers["Location"]
    assert bought(first) == bought(again)
    assert shop.balance() == "95.50"
    assert len(shop.get(LINKS).json["data"]["data"]) == 1


def test_a_free_link_binds_its_key_too(shop: Buyer) -> None:
    assert bought(shop.create(FREE, key="k")) == bought(shop.create(FREE, key="k"))
    assert code_of(shop.create(BASIC, key="k")) == "IDEMPOTENCY_KEY_REUSED"


def test_no_name_and_an_empty_name_are_the_same_request(shop: Buyer) -> None:
    first = shop.create(FREE, key="k")
    for name in (None, ""):
        assert shop.create(FREE, key="k", name=name).json["data"]["id"] == first.json["data"]["id"]


def test_another_link_with_the_key_is_refused(shop: Buyer) -> None:
    shop.create(BASIC, key="k", name="Van")
    for reply in (
        shop.create(MORE, key="k", name="Van"),
        shop.create(BASIC, key="k"),
        shop.post(LINKS, json={"plan_id": MISSING}, headers={"Idempotency-Key": "k"}),
    ):
        assert (reply.status_code, code_of(reply)) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert shop.balance() == "95.50"


def test_a_key_belongs_to_one_organization_and_one_operation(service: Service, shop: Buyer) -> None:
    link, rival = shop.create(key="k").json["data"], buyer(service)
    theirs = rival.create(key="k")
    change = shop.change(link, key="k", add=[FREE])
    lookup = shop.look_up("+971508245915", **{"Idempotency-Key": "k"})
    for reply, status in ((theirs, 201), (change, 200), (lookup, 200)):
        assert (reply.status_code, reply.headers.get(REPLAYED)) == (status, None)


def test_twins_at_the_same_moment_buy_one_link(service: Service) -> None:
    shop = buyer(service, "4.50")

    def ask(_: int) -> tuple[int, str, str, str]:
        client, key = service.app.test_client(), {"Idempotency-Key": "twins"}
        body = {"plan_id": shop.plans[BASIC]}
        reply = client.post(LINKS, json=body, headers={**shop.headers, **key})
        data = reply.json["data"]
        return reply.status_code, data["id"], data["iccid"], data["amount_charged"]

    with ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(ask, range(12)))
    assert len(set(outcomes)) == 1
    assert outcomes[0][0] == 201
    assert shop.balance() == "0.00"
    assert len(shop.transactions(kind="activation")) == 1


def test_a_failure_that_kept_no_money_frees_its_key_for_any_request(service: Service) -> None:
    shop = buyer(service, "1.00")
    assert shop.create(UNSOLD, key="k").status_code == 422
    assert shop.create(BASIC, key="k").status_code == 402
    for fault in (Fault.NO_ENDPOINT, Fault.PROVIDER_ERROR, Fault.NO_ESIM):
        reply = shop.create(fault.value, key="k")
        assert (reply.status_code, reply.headers.get(REPLAYED)) == (502, None)
    last = shop.create(Fault.LOST_REPLY.value, key="k")
    assert (last.status_code, last.headers.get(REPLAYED)) == (201, None)
    assert shop.create(Fault.LOST_REPLY.value, key="k").headers[REPLAYED] == "true"
    assert shop.balance() == "0.00"


def test_what_was_bought_is_repeated_whatever_became_of_the_plan(shop: Buyer) -> None:
    first = shop.create(key="k")
    plan_id, service = shop.plans[BASIC], shop.service
    service.container.catalogue.switch(UUID(plan_id), service.cause(), enabled=False)
    service.until(lambda: shop.get(f"/v1/plans/{plan_id}").status_code == 404)
    assert bought(shop.create(key="k")) == bought(first)
    assert shop.create(key="other").status_code == 422


def test_plans_are_changed_once(shop: Buyer) -> None:
    link = shop.link()
    body = {"remove": [link["activations"][0]["id"]], "add": [MORE, FREE]}
    first, again = shop.change(link, key="k", **body), shop.change(link, key="k", **body)
    assert REPLAYED not in first.headers
    assert again.headers[REPLAYED] == "true"
    assert bought(first) == bought(again)
    assert first.json["data"]["activations"] == again.json["data"]["activations"]
    assert shop.balance() == "93.50"


def test_a_repeated_change_shows_the_link_as_it_is_now(shop: Buyer) -> None:
    link = shop.link()
    first = shop.change(link, key="k", add=[MORE])
    shop.change(link, add=[FREE])
    again = shop.change(link, key="k", add=[MORE])
    assert (again.status_code, bought(again)) == (200, bought(first))
    assert len(again.json["data"]["activations"]) == 3


def test_another_change_with_the_key_is_refused(shop: Buyer) -> None:
    link, other = shop.link(), shop.link(FREE)
    shop.change(link, key="k", add=[MORE, FREE])
    for reply in (
        shop.change(link, key="k", add=[FREE, MORE]),
        shop.change(link, key="k", add=[MORE]),
        shop.change(link, key="k", add=[MORE, FREE], remove=[link["activations"][0]["id"]]),
        shop.change(other, key="k", add=[MORE, FREE]),
    ):
        assert (reply.status_code, code_of(reply)) == (422, "IDEMPOTENCY_KEY_REUSED")


def test_twins_at_the_same_moment_change_plans_once(service: Service) -> None:
    shop = buyer(service, "6.50")
    link = shop.link()

    def ask(_: int) -> tuple[int, str, tuple[str, ...]]:
        client, key = service.app.test_client(), {"Idempotency-Key": "twins"}
        body = {"add": [shop.plans[MORE]]}
        path = f"{LINKS}/{link['id']}/plans"
        reply = client.put(path, json=body, headers={**shop.headers, **key})
        data = reply.json["data"]
        ids = tuple(each["id"] for each in data["activations"])
        return reply.status_code, data["amount_charged"], ids

    with ThreadPoolExecutor(12) as pool:
        outcomes = set(pool.map(ask, range(12)))
    assert {outcome[:2] for outcome in outcomes} == {(200, "2.00")}
    assert len(outcomes) == 1
    assert shop.balance() == "0.00"


def test_changes_of_one_link_at_the_same_moment_follow_each_other(service: Service) -> None:
    shop = buyer(service, "100.00")
    link = shop.link(FREE)

    def ask(_: int) -> int:
        body, path = {"add": [shop.plans[MORE]]}, f"{LINKS}/{link['id']}/plans"
        return service.app.test_client().put(path, json=body, headers=shop.headers).status_code

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(ask, range(6))) == {200}
    assert len(shop.read(link).json["data"]["activations"]) == 7
    assert shop.balance() == "88.00"


def test_a_change_that_has_done_something_binds_its_key_with_its_failure(shop: Buyer) -> None:
    link = shop.link()
    body = {"add": [MORE, Fault.PROVIDER_ERROR.value]}
    first, again = shop.change(link, key="k", **body), shop.change(link, key="k", **body)
    assert first.status_code == 502
    assert REPLAYED not in first.headers
    assert again.headers[REPLAYED] == "true"
    assert again.headers["Retry-After"] == first.headers["Retry-After"] == "5"
    assert error_of(first) == error_of(again)
    assert code_of(shop.change(link, key="k", add=[FREE])) == "IDEMPOTENCY_KEY_REUSED"
    assert shop.balance() == "93.50"


def test_a_change_that_has_done_nothing_frees_its_key(shop: Buyer) -> None:
    link = shop.link()
    for _ in range(2):
        reply = shop.change(link, key="k", add=[Fault.NO_ENDPOINT.value, MORE])
        assert (reply.status_code, reply.headers.get(REPLAYED)) == (502, None)
        assert reply.json["error"]["details"]["refunded"] == "3.00"
    assert list(fields_of(shop.change(link, key="k", add=[UNSOLD]))) == ["add.0"]
    last = shop.change(link, key="k", add=[MORE])
    assert (last.status_code, last.headers.get(REPLAYED)) == (200, None)


def test_a_first_request_that_still_runs_is_waited_for_and_then_a_409(
    make_service: MakeService,
) -> None:
    service = make_service(PROVISIONING_DEADLINE_S="1")
    shop = service.tenant()
    parts = service.container
    bought_plan = BoughtPlan(parts.accounts.new_id(), "p-1", "Running", 0, 1000, 7, ["DE"])
    running = Link.request(
        link_id(shop.id, "k", 1),
        service.cause(),
        organization_id=shop.id,
        name=None,
        plan=bought_plan,
        sponsor_profiles=[],
        currency="USD",
        deadline=parts.clock() + timedelta(seconds=30),
    )
    parts.log.append(running)
    body = {"plan_id": str(bought_plan.plan_id)}
    reply = shop.post(LINKS, json=body, headers={"Idempotency-Key": "k"})
    assert (reply.status_code, code_of(reply)) == (409, "IDEMPOTENCY_IN_PROGRESS")
    assert (reply.headers["Retry-After"], reply.json["error"]["details"]) == (
        "1",
        {"retryable": True},
    )
    other = shop.post(LINKS, json={"plan_id": MISSING}, headers={"Idempotency-Key": "k"})
    assert code_of(other) == "IDEMPOTENCY_KEY_REUSED"


@pytest.mark.parametrize("key", ["", " ", "two words", "k" * 256, "é", "\x7f"])
def test_a_wrong_key_is_refused(shop: Buyer, key: str) -> None:
    body = {"plan_id": shop.plans[FREE]}
    reply = shop.post(LINKS, json=body, headers={"Idempotency-Key": key})
    assert list(fields_of(reply)) == ["Idempotency-Key"]
