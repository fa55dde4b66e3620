"""Links that cannot be created: what the reply says, and where the money is."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from werkzeug.test import TestResponse

from app.adapters.networks.simulated.network import Fault
from app.settings import HTTP_THREADS, WAITING_MAX
from domain.catalogue.plan import SIMULATED
from tests.app.http.buying import BASIC, FREE, LINKS, UNSOLD, Buyer, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, code_of

NO_STOCK = (
    "The network has no eSIM available for this plan; nothing was taken; choose another plan."
)


def test_the_plan_comes_before_the_configuration_and_that_before_the_wallet(
    make_service: MakeService,
) -> None:
    service = make_service(NETWORK_BASE_PLAN="").start()
    shop = buyer(service, None)
    assert shop.create(UNSOLD).status_code == 422
    reply = shop.create(BASIC)
    assert (reply.status_code, code_of(reply)) == (500, "CONFIG_ERROR")
    assert reply.json["error"]["details"] == {"retryable": False}


@pytest.mark.any_database
def test_a_balance_that_is_short_is_a_402_with_its_numbers(service: Service) -> None:
    shop = buyer(service, "4.49")
    reply = shop.create()
    assert (reply.status_code, code_of(reply)) == (402, "INSUFFICIENT_BALANCE")
    details = {"required": "4.50", "available": "4.49", "currency": "USD"}
    assert reply.json["error"]["details"] == details
    assert reply.json["error"]["message"].endswith("4.50 USD is required, 4.49 USD is available.")
    assert shop.get(LINKS).json["data"]["data"] == []


@pytest.mark.parametrize(
    ("fault", "code", "reason", "told"),
    [
        (
            Fault.NO_ENDPOINT,
            "PROVISIONING_FAILED",
            "network_rejected",
            "The network answered, but without what was asked of it; 1.00 USD has been refunded.",
        ),
        (
            Fault.PROVIDER_ERROR,
            "PROVISIONING_ERROR",
            "network_unavailable",
            "The network could not be reached; 1.00 USD has been refunded; try again.",
        ),
        (
            Fault.NO_ESIM,
            "PROVISIONING_ERROR",
            "no_esim_available",
            NO_STOCK,
        ),
    ],
)
def test_a_creation_that_fails_gives_its_money_back_first_and_says_why(
    service: Service, fault: Fault, code: str, reason: str, told: str
) -> None:
    refunded = "0.00" if fault is Fault.NO_ESIM else "1.00"
    retry_after = "5" if reason == "network_unavailable" else None
    shop = buyer(service, "1.00")
    reply = shop.create(fault.value)
    assert (reply.status_code, code_of(reply)) == (502, code)
    retryable = retry_after is not None
    details = {"reason": reason, "refunded": refunded, "retryable": retryable}
    assert reply.json["error"]["details"] == details
    assert reply.json["error"]["message"] == told
    assert reply.headers.get("Retry-After") == retry_after
    assert shop.balance() == "1.00"
    assert shop.get(LINKS).json["data"]["data"] == []
    entries = shop.transactions()
    kinds = [entry["kind"] for entry in entries]
    taken = refunded != "0.00"
    assert kinds == (["refund", "activation", "deposit"] if taken else ["deposit"])
    if taken:
        assert (entries[0]["refund_of"], entries[0]["reason"]) == (entries[1]["id"], code.lower())
        assert not {"refund_of", "reason"} & entries[1].keys()
    assert_all_paid_back(shop)


def assert_all_paid_back(shop: Buyer) -> None:
    """Check that the references of the refunds name a link that does not exist."""
    for entry in shop.transactions(kind="refund"):
        assert shop.get(f"{LINKS}/{entry['reference']['id']}").status_code == 404


@pytest.mark.any_database
def test_an_endpoint_whose_reply_was_lost_is_found(service: Service) -> None:
    shop = buyer(service, "1.00")
    link = shop.link(Fault.LOST_REPLY.value)
    assert link["amount_charged"] == "1.00"
    assert shop.balance() == "0.00"
    assert shop.read(link).json["data"]["status"] == "active"


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that gives the network one second."""
    running = Service(tmp_path_factory.mktemp("hasty"), PROVISIONING_DEADLINE_S="1").start()
    yield running
    running.stop()


def test_a_network_that_is_too_slow_is_not_waited_for(hasty: Service) -> None:
    shop = buyer(hasty, "1.00")
    reply = shop.create(Fault.SLOW.value)
    assert (reply.status_code, code_of(reply)) == (502, "PROVISIONING_ERROR")
    assert reply.json["error"]["details"] == {
        "reason": "deadline",
        "refunded": "1.00",
        "retryable": True,
    }
    told = "The network did not answer in time; 1.00 USD has been refunded; try again."
    assert reply.json["error"]["message"] == told
    assert 1_000 <= reply.json["meta"]["response_time_ms"] < 4_500
    assert shop.balance() == "1.00"
    assert shop.get(LINKS).json["data"]["data"] == []


def test_forty_slow_creations_of_one_organization_leave_places_for_another(hasty: Service) -> None:
    slow, other = buyer(hasty, "40.00"), buyer(hasty)
    body = {"plan_id": slow.plans[Fault.SLOW.value]}

    def ask(number: int) -> TestResponse:
        headers = {**slow.headers, "Idempotency-Key": f"key-{number}"}
        return hasty.app.test_client().post(LINKS, json=body, headers=headers)

    with ThreadPoolExecutor(40) as pool:
        asked = [pool.submit(ask, number) for number in range(40)]
        hasty.until(lambda: sum(each.done() for each in asked) == 20)
        assert other.create().status_code == 201
        replies = [each.result() for each in asked]
    refused = [reply for reply in replies if reply.status_code == 429]
    assert [reply.status_code for reply in replies].count(502) == len(refused) == 20
    assert {(code_of(reply), reply.headers["Retry-After"]) for reply in refused} == {
        ("RATE_LIMITED", "1")
    }
    assert {reply.json["error"]["details"]["retryable"] for reply in refused} == {True}
    assert slow.balance() == "40.00"
    number = next(number for number, reply in enumerate(replies) if reply in refused)
    body["plan_id"] = slow.plans[FREE]  # Their keys are free, for any request.
    assert ask(number).status_code == 201


def test_beyond_its_share_an_organization_hears_of_its_input_first(
    make_service: MakeService,
) -> None:
    service = make_service(NETWORK_BASE_PLAN="").start()
    shop = buyer(service, None)
    with ExitStack() as taken:
        for _ in range(WAITING_MAX // 2):
            taken.enter_context(service.container.waiting.place(shop.id, SIMULATED))
        assert shop.create(UNSOLD).status_code == 422
        assert shop.create(BASIC).status_code == 429  # Before what is not configured.


def test_what_the_balance_pays_for_is_created_and_no_more(service: Service) -> None:
    shop = buyer(service, "21.00")
    called = Fault.LOST_REPLY.value  # At 1.00 each.

    def ask(number: int) -> int:
        client = service.app.test_client()
        body = {"plan_id": shop.plans[called], "name": str(number)}
        return client.post(LINKS, json=body, headers=shop.headers).status_code

    with ThreadPoolExecutor(WAITING_MAX // 2) as pool:  # What one organization may have waiting.
        statuses = sorted(pool.map(ask, range(40)))
    assert statuses == [201] * 21 + [402] * 19
    assert shop.balance() == "0.00"
    links = shop.get(LINKS, query_string={"per_page": 100}).json["data"]
    assert links["meta"]["total"] == 21
    assert len({link["iccid"] for link in links["data"]}) == 21


def test_half_of_the_threads_answer_while_the_others_wait(make_service: MakeService) -> None:
    assert 2 * WAITING_MAX == HTTP_THREADS
    service = make_service().start()
    shop = buyer(service)
    link = shop.link()
    with ExitStack() as taken:
        for _ in range(WAITING_MAX):
            taken.enter_context(service.container.waiting.place(uuid4(), SIMULATED))
        reply = shop.create()
        assert (reply.status_code, code_of(reply)) == (503, "SERVICE_UNAVAILABLE")
        assert reply.headers["Retry-After"] == "5"
        assert shop.read(link).status_code == 200
    assert shop.create().status_code == 201
    assert shop.balance() == "91.00"


def test_without_its_log_nothing_is_sold(service: Service, tmp_path: Path) -> None:
    shop, lost = buyer(service), service.without_its_database(tmp_path)
    body = {"plan_id": shop.plans[BASIC]}
    reply = lost.client.post(LINKS, json=body, headers=shop.headers)
    lost.stop()
    assert (reply.status_code, code_of(reply)) == (503, "SERVICE_UNAVAILABLE")
