"""The price of a lookup is that in the log, in whatever process it was set."""

from contextlib import closing

import pytest

from app.bootstrap.container import Container
from domain.accounts.prices import STALE_S
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service

NUMBER = "+14155552671"


def set_elsewhere(service: Service, micros: int) -> None:
    """Set the price in another process."""
    with closing(Container(service.container.settings)) as other:
        other.prices.set(micros, service.cause())


def charged(service: Service) -> str:
    reply = service.tenant().look_up(NUMBER)
    amount: str = reply.json["meta"]["charge"]["amount"]
    return amount


def test_every_process_charges_a_new_price_within_a_second_or_two(
    make_service: MakeService,
) -> None:
    service = make_service().start()
    assert charged(service) == "0.005"
    set_elsewhere(service, 30_000)
    service.until(lambda: charged(service) == "0.03")
    account = service.tenant(price="0.01").get("/v1/account").json["data"]
    assert account["prices"]["lookup"] == "0.01", "its own price"
    job = service.tenant().create_job([NUMBER])
    assert job.json["data"]["charge"]["amount"] == "0.03"


def test_a_process_that_was_stopped_reads_the_price_before_it_charges(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service()
    assert charged(service) == "0.005"
    read_s = service.container.prices.read_s
    set_elsewhere(service, 30_000)
    monkeypatch.setattr("domain.accounts.prices.time.monotonic", lambda: read_s + STALE_S - 1)
    assert charged(service) == "0.005"
    monkeypatch.setattr("domain.accounts.prices.time.monotonic", lambda: read_s + STALE_S + 1)
    assert charged(service) == "0.03"
