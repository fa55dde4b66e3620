"""Links that cannot be created: what the reply says, and where the money is."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from uuid import uuid4

import pytest
from werkzeug.test import TestResponse

from app.adapters.networks.simulated.network import Fault
from app.settings import HTTP_THREADS, WAITING_MAX
from domain.catalogue.plan import SIMULATED
from tests.app.http.buying import BASIC, FREE, LINKS, UNSOLD, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, code_of


@pytest.fixture(scope="module")
def hasty(share_service: MakeService) -> Service:
    """A service that gives the network so long that forty can ask meanwhile."""
    return share_service(PROVISIONING_DEADLINE_S="4").start()


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
            taken.enter_context(service.container.waiting[SIMULATED].slot(shop.id))
        assert shop.create(UNSOLD).status_code == 422
        assert shop.create(BASIC).status_code == 429  # Before what is not configured.


def test_half_of_the_threads_answer_while_the_others_wait(make_service: MakeService) -> None:
    assert 2 * WAITING_MAX == HTTP_THREADS
    service = make_service().start()
    shop = buyer(service)
    link = shop.link()
    with ExitStack() as taken:
        for _ in range(WAITING_MAX):
            taken.enter_context(service.container.waiting[SIMULATED].slot(uuid4()))
        reply = shop.create()
        assert (reply.status_code, code_of(reply)) == (503, "SERVICE_UNAVAILABLE")
        assert reply.headers["Retry-After"] == "5"
        assert shop.read(link).status_code == 200
    assert shop.create().status_code == 201
    assert shop.balance() == "91.00"
