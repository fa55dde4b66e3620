"""A creation that is only asked about, or not waited for, over HTTP."""

from typing import Any

import pytest
from werkzeug.test import TestResponse

from app.adapters.networks.simulated.network import Fault
from tests.app.http.buying import BASIC, DISABLED, FREE, LINKS, MISSING, Buyer, buyer
from tests.app.http.service import Service, code_of, fields_of
from tests.installation import wait_until

pytestmark = pytest.mark.any_database

ASYNC = {"Prefer": "respond-async"}
REQUESTS = "/v1/link-requests"


@pytest.fixture
def acme(service: Service) -> Buyer:
    return buyer(service, "10.00")


def post(shop: Buyer, called: str = BASIC, query: str = "", **headers: str) -> TestResponse:
    body = {"plan_id": shop.plans[called]}
    return shop.post(LINKS + query, json=body, headers={**headers})


def ended(shop: Buyer, request_id: str) -> dict[str, Any]:
    """Poll a request until it has ended."""

    def state() -> TestResponse:
        reply = shop.get(f"{REQUESTS}/{request_id}")
        assert reply.status_code == 200
        pending = reply.json["data"]["status"] == "pending"
        assert reply.headers.get("Retry-After") == ("1" if pending else None)
        return reply

    wait_until(lambda: state().json["data"]["status"] != "pending")
    found: dict[str, Any] = state().json["data"]
    return found


def test_the_price_and_the_balance_after_it_are_told_and_nothing_is_made(acme: Buyer) -> None:
    reply = post(acme, query="?dry_run=true", **ASYNC)
    assert reply.status_code == 200
    assert reply.json["data"] == {
        "plan_id": acme.plans[BASIC],
        "plan_name": BASIC,
        "price": "4.50",
        "currency": "USD",
        "balance_after": "5.50",
    }
    assert not {"Location", "Preference-Applied", "Idempotency-Replayed"} & {*reply.headers.keys()}
    assert (acme.balance(), acme.get(LINKS).json["data"]["data"]) == ("10.00", [])


def test_a_dry_run_ignores_the_key_and_binds_none(acme: Buyer) -> None:
    key = {"Idempotency-Key": "key-1"}
    assert post(acme, FREE, "?dry_run=1", **key).status_code == 200
    assert post(acme, BASIC, **key).status_code == 201
    again = post(acme, FREE, "?dry_run=true", **key)
    assert (again.status_code, again.json["data"]["price"]) == (200, "0.00")
    assert "Idempotency-Replayed" not in again.headers
    assert post(acme, BASIC, "?dry_run=false", **key).headers["Idempotency-Replayed"] == "true"


def test_a_dry_run_ignores_a_key_that_is_none(acme: Buyer) -> None:
    key = {"Idempotency-Key": "no key"}
    for query in ("?dry_run=true", "?dry_run=1"):
        assert post(acme, FREE, query, **key).status_code == 200
    for query in ("", "?dry_run=false"):
        assert [*fields_of(post(acme, FREE, query, **key))] == ["Idempotency-Key"]


def test_a_dry_run_is_refused_as_the_creation_is(service: Service, acme: Buyer) -> None:
    poor = buyer(service, "4.49")
    for shop, called, status, code in [
        (acme, DISABLED, 422, "VALIDATION_ERROR"),
        (buyer(service, None), BASIC, 403, "BILLING_NOT_CONFIGURED"),
        (poor, BASIC, 402, "INSUFFICIENT_BALANCE"),
        (acme, Fault.NO_ESIM.value, 502, "PROVISIONING_ERROR"),
    ]:
        dry, wet = post(shop, called, "?dry_run=true"), post(shop, called)
        assert (dry.status_code, code_of(dry)) == (status, code)
        assert dry.json["error"] == wet.json["error"]
    assert post(buyer(service, None), FREE, "?dry_run=true").json["data"]["balance_after"] is None


@pytest.mark.parametrize("query", ["?dry_run=maybe", "?dry_run=", "?dry_run=true&dry_run=true"])
def test_whether_to_run_dry_is_said_once_and_clearly(acme: Buyer, query: str) -> None:
    reply = post(acme, query=query)
    assert (reply.status_code, list(fields_of(reply))) == (422, ["dry_run"])
    assert acme.balance() == "10.00"


def test_who_does_not_want_to_wait_is_told_where_the_link_will_be(acme: Buyer) -> None:
    reply = post(acme, **ASYNC)
    assert reply.status_code == 202
    request_id = reply.json["data"]["id"]
    assert reply.json["data"] == {"id": request_id, "status": "pending"}
    assert reply.headers["Location"] == f"https://api.example{REQUESTS}/{request_id}"
    assert reply.headers["Preference-Applied"] == "respond-async"
    assert reply.headers["Retry-After"] == "1"
    found = ended(acme, request_id)
    assert (found["id"], found["status"]) == (request_id, "active")
    assert (found["error"], found["refunded"]) == (None, None)
    assert (found["link"]["id"], found["link"]["amount_charged"]) == (request_id, "4.50")
    assert acme.get(f"{LINKS}/{request_id}").status_code == 200
    assert acme.balance() == "5.50"


def test_the_outcome_of_one_that_was_waited_for_can_be_read_too(acme: Buyer) -> None:
    link = acme.link()
    found = acme.get(f"{REQUESTS}/{link['id']}").json["data"]
    assert (found["status"], found["link"]["iccid"]) == ("active", link["iccid"])


@pytest.mark.parametrize("fault", [Fault.NO_ENDPOINT, Fault.PROVIDER_ERROR, Fault.NO_ESIM])
def test_a_failure_is_told_with_its_error_and_what_came_back(acme: Buyer, fault: Fault) -> None:
    request_id = post(acme, fault.value, **ASYNC).json["data"]["id"]
    found = ended(acme, request_id)
    assert (found["status"], found["link"]) == ("failed", None)
    waited = post(acme, fault.value).json["error"]
    # The key of who did not wait is bound to the failure.
    waited["message"] = waited["message"].replace(
        "; try again.", "; try again with a new Idempotency-Key."
    )
    assert found["error"] == waited
    assert found["refunded"] == waited["details"]["refunded"]
    assert acme.balance() == "10.00"
    assert acme.get(f"{LINKS}/{request_id}").status_code == 404


@pytest.mark.parametrize("first", [ASYNC, {}])
def test_a_key_answers_as_things_stand_now_whoever_waits(
    acme: Buyer, first: dict[str, str]
) -> None:
    key = {"Idempotency-Key": "key-1"}
    request_id = post(acme, **first, **key).json["data"]["id"]
    ended(acme, request_id)
    for prefer in (ASYNC, {}):
        again = post(acme, **prefer, **key)
        assert (again.status_code, again.json["data"]["id"]) == (201, request_id)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.headers["Location"] == f"https://api.example{LINKS}/{request_id}"
    assert acme.balance() == "5.50"


def test_a_key_tells_the_failure_of_what_nobody_waited_for(acme: Buyer) -> None:
    key = {"Idempotency-Key": "key-1"}
    request_id = post(acme, Fault.NO_ENDPOINT.value, **ASYNC, **key).json["data"]["id"]
    ended(acme, request_id)
    for prefer in (ASYNC, {}, ASYNC):
        again = post(acme, Fault.NO_ENDPOINT.value, **prefer, **key)
        assert (again.status_code, code_of(again)) == (502, "PROVISIONING_FAILED")
        assert again.headers["Idempotency-Replayed"] == "true"
    assert code_of(post(acme, BASIC, **key)) == "IDEMPOTENCY_KEY_REUSED"
    assert len(acme.transactions(kind="refund")) == 1


@pytest.mark.parametrize(
    ("prefer", "status"),
    [
        ("respond-async", 202),
        ("Respond-Async; foo", 202),
        ("handling=lenient, respond-async, wait=10", 202),
        ('foo="a, b", respond-async', 202),
        ("wait=10", 201),
        ('foo="x, respond-async, y"', 201),
        ("respond-asynchronously", 201),
        ("", 201),
        (',,;="', 201),
    ],
)
def test_a_preference_is_read_as_rfc_7240_has_it(acme: Buyer, prefer: str, status: int) -> None:
    assert post(acme, FREE, Prefer=prefer).status_code == status


def test_a_request_of_nobody_or_of_another_is_not_found(service: Service, acme: Buyer) -> None:
    request_id = post(acme, FREE, **ASYNC).json["data"]["id"]
    missing = acme.get(f"{REQUESTS}/{MISSING}")
    foreign = buyer(service).get(f"{REQUESTS}/{request_id}")
    assert missing.status_code == foreign.status_code == 404
    assert acme.get(f"{REQUESTS}/nothing").status_code == 404
    assert acme.get(f"{REQUESTS}/{acme.link(FREE)['iccid']}").status_code == 404
