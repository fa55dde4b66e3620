"""A whole service with two networks, of which one hangs: nobody else's work is slower for it."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from app.settings import WAITING_MAX
from projections.audit.auditor import check_log
from tests.app.http.buying import FREE, LINKS, Buyer, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service
from tests.domain.buying import Gate
from tests.installation import wait_until
from tests.plan_files import import_plans, plan
from tests.second_network import SECOND, add_to

PLACES = WAITING_MAX // 2  # Of each of two networks.
SOON_S = 4.5  # Tens of milliseconds on a quiet machine; a call of a network may take 5 s.

VALID = "+14155550100"


@contextmanager
def at_once() -> Iterator[None]:
    begun_s = time.monotonic()
    yield
    assert time.monotonic() - begun_s < SOON_S


def on_second(service: Service, network: str = SECOND) -> Buyer:
    """Return an organization that is offered a plan of the second network too."""
    shop = buyer(service)
    shop.plans[network] = shop.plans[FREE][:-4] + "abcd"
    offered = plan(network, id=shop.plans[network], network=network, retail_price="0.00")
    import_plans(service.container, {**offered, "organization_id": str(shop.id)})
    service.until_projected("plans")
    return shop


@pytest.fixture
def service(make_service: MakeService, monkeypatch: pytest.MonkeyPatch) -> Service:
    environment = add_to({}, monkeypatch)
    return make_service(PROVISIONING_DEADLINE_S="60", **environment).start()


def test_a_network_that_hangs_holds_up_nothing_else(service: Service) -> None:
    shops = [on_second(service) for _ in range(3)]
    here, there = shops[0].link(), shops[0].link(SECOND)
    network, gate = service.container.networks.of(SECOND), Gate()
    network.before("create_endpoint", *[gate] * WAITING_MAX)

    def create(number: int) -> int:
        shop, client = shops[number % 3], service.app.test_client()
        body = {"plan_id": shop.plans[SECOND]}
        return client.post(LINKS, json=body, headers=shop.headers).status_code

    with ThreadPoolExecutor(WAITING_MAX) as pool:
        asked = [pool.submit(create, number) for number in range(WAITING_MAX)]
        try:
            wait_until(lambda: network.count("create_endpoint") > PLACES)
            wait_until(lambda: sum(each.done() for each in asked) == WAITING_MAX - PLACES)
            with at_once():
                assert shops[0].create(FREE).status_code == 201
            with at_once():
                assert shops[0].look_up(VALID).status_code == 200
            with at_once():
                assert shops[0].change(here, add=[FREE]).status_code == 200
            with at_once():
                assert "stale" not in shops[0].read(here).json["meta"]
            with at_once():
                assert shops[0].read(there).json["meta"]["stale"]
        finally:
            gate.open()
        statuses = [each.result() for each in asked]
    assert statuses.count(201) == PLACES
    assert set(statuses) <= {201, 429, 503}
    assert check_log(service.container.log).failures == []
