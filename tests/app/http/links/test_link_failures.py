"""Links that cannot be created: what the reply says, and where the money is."""

from contextlib import ExitStack
from uuid import uuid4

from app.settings import HTTP_THREADS, WAITING_MAX
from domain.catalogue.plan import SIMULATED
from tests.app.http.buying import BASIC, UNSOLD, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import code_of


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
