"""A whole service with two networks, of which one hangs: nobody else's work is slower for it."""

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from app.bootstrap.container import Container
from app.settings import WAITING_MAX
from domain.links.networks import DRAINED
from domain.provider_errors import Unavailable
from projections.audit.auditor import check_log
from tests.app.http.buying import FREE, LINKS, Buyer, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, fields_of
from tests.domain.buying import Gate
from tests.faulty_network import FaultyNetwork
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
    assert isinstance(network, FaultyNetwork)
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


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port that answers no SYN: whoever connects waits until its own time-out."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = []
        for _ in range(3):  # The queue takes one or two.
            filler = socket.socket()
            filler.setblocking(False)  # noqa: FBT003  # Of the library.
            filler.connect_ex(listener.getsockname())
            fillers.append(filler)
        yield listener.getsockname()[1]
        for filler in fillers:
            filler.close()


def test_a_network_whose_host_is_gone_holds_up_nothing_else(
    make_service: MakeService, black_hole: int
) -> None:
    gone = {"ESIMGO_URL": f"http://127.0.0.1:{black_hole}", "ESIMGO_API_KEY": "key"}
    service = make_service(NETWORK_PROVIDER="simulated,esimgo", SANDBOX="false", **gone).start()
    shop = on_second(service, "esimgo")
    with pytest.raises(Unavailable):
        service.container.networks.of("esimgo").usage("8900", timeout_s=0.2)
    with ThreadPoolExecutor(PLACES // 2) as pool:
        client = service.app.test_client
        body = {"plan_id": shop.plans["esimgo"]}
        lost = [
            pool.submit(client().post, LINKS, json=body, headers=shop.headers)
            for _ in range(PLACES // 2)
        ]
        for call in (lambda: shop.create(FREE), lambda: shop.look_up(VALID)):
            with at_once():
                assert answer_of(call) in {200, 201}
        assert {each.result().status_code for each in lost} == {502}
    assert service.container.observed.providers_up()["network_provider_up", "simulated"]
    assert shop.balance() == "99.995", "the lookup alone has cost something"


def answer_of(call: Callable[[], object]) -> int:
    return call().status_code  # type: ignore[attr-defined]  # Of a reply.


def test_a_process_hears_within_seconds_that_a_provider_is_drained(service: Service) -> None:
    shop = on_second(service)
    link = shop.link(SECOND)
    operator = Container(service.container.settings)

    def offered() -> list[str]:
        listed = shop.get(f"{LINKS}/{link['id']}/topup-plans").json["data"]
        return [each["name"] for each in listed]

    def say(name: str, *, drained: bool) -> None:
        operator.drains.switch(name, service.cause(), drained=drained)

    try:
        assert offered() == [SECOND]
        say(SECOND, drained=True)
        wait_until(lambda: shop.create(SECOND).status_code == 422)
        assert fields_of(shop.create(SECOND)) == {"plan_id": [DRAINED]}
        assert (offered(), shop.create(FREE).status_code) == ([], 201)
        say(SECOND, drained=False)
        wait_until(lambda: shop.create(SECOND).status_code == 201)
        say("offline", drained=True)
        wait_until(lambda: shop.look_up("+14155550123").status_code == 503)
        assert service.client.get("/number-lookup/health").status_code == 503
        say("offline", drained=False)
        wait_until(lambda: shop.look_up("+14155550123").status_code == 200)
    finally:
        operator.close()
