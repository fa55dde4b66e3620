"""Those who wait for a link: how many may, and what they leave to others meanwhile."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from uuid import uuid4

import pytest

from app.settings import WAITING_MAX
from domain.blocking import on_blocking
from domain.catalogue.plan import SIMULATED
from domain.errors import ServiceUnavailable
from tests.app.http.buying import BASIC, UNSOLD, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service
from tests.second_network import SECOND, add_to


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


def test_each_of_two_networks_has_half_of_the_places(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service(**add_to({}, monkeypatch))
    waiting = service.container.waiting
    with ExitStack() as taken:
        for _ in range(WAITING_MAX // 2):
            taken.enter_context(waiting[SECOND].slot(uuid4()))
        with pytest.raises(ServiceUnavailable), waiting[SECOND].slot(uuid4()):
            pass
        with waiting[SIMULATED].slot(uuid4()):
            pass


def test_who_waits_for_a_link_lets_others_compute(service: Service) -> None:
    shop, lent = buyer(service), list[int]()

    @contextmanager
    def lend() -> Iterator[None]:
        lent.append(1)
        yield

    on_blocking(lend)
    try:
        assert shop.create(BASIC).status_code == 201
    finally:
        on_blocking(nullcontext)
    assert lent
