"""The rules of the Idempotency-Key header, each tested once for all operations over HTTP."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from app.adapters.networks.simulated.network import Fault
from domain.lookups import single as single_lookup
from tests.app.http.buying import FREE, MORE, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.idempotency.requests import (
    EVERY,
    KEY,
    ONE,
    ChangeRequest,
    LinkRequest,
    LookupRequest,
    Request,
)
from tests.support.erasing import erase_months

# How a database keeps a key and lets twins race is the rule of test_commands, on both.
pytestmark = pytest.mark.any_database

REPLAYED = "Idempotency-Replayed"


def of(kinds: Sequence[type[Request]]) -> pytest.MarkDecorator:
    """Say for which operations a rule holds."""
    return pytest.mark.parametrize("kind", kinds, ids=lambda each: each.__name__)


def was_replayed(request: Request, status: int | None = None, **of: object) -> bool:
    """Send a request and tell whether its reply was a replay."""
    reply = request.send(**of)  # type: ignore[arg-type]  # as they come
    assert reply.status_code == (status or request.status), reply.text
    return reply.headers.get(REPLAYED) == "true"


@of(EVERY)
def test_the_first_reply_comes_again_and_is_charged_once(
    service: Service, kind: type[Request]
) -> None:
    request = kind(service)
    first, again = request.send(), request.send()
    assert (first.status_code, first.headers.get(REPLAYED)) == (kind.status, None)
    assert (again.status_code, again.headers[REPLAYED]) == (kind.status, "true")
    assert request.outcome(again) == request.outcome(first)
    assert Decimal(request.shop.balance()) == 100 - Decimal(kind.cost)


@of(EVERY)
def test_another_request_with_the_key_is_refused(service: Service, kind: type[Request]) -> None:
    request = kind(service)
    request.send()
    for body in request.bodies[1:]:
        reply = request.send(body)
        assert (reply.status_code, code_of(reply)) == (422, "IDEMPOTENCY_KEY_REUSED")
    if isinstance(request, ChangeRequest):
        request.path = request.elsewhere
        assert code_of(request.send()) == "IDEMPOTENCY_KEY_REUSED"
    assert Decimal(request.shop.balance()) == 100 - Decimal(kind.cost)


def test_a_key_belongs_to_one_organization_and_one_operation(service: Service) -> None:
    for shop in (buyer(service), buyer(service)):
        for kind in EVERY:
            assert not was_replayed(kind(service, shop=shop))


@of(EVERY)
def test_twins_at_the_same_moment_get_one_reply(service: Service, kind: type[Request]) -> None:
    request = kind(service, kind.cost)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: request.send(), range(8)))
    assert {each.status_code for each in replies} == {kind.status}
    assert len({str(request.outcome(each)) for each in replies}) == 1
    assert Decimal(request.shop.balance()) == 0
    assert len(request.shop.transactions()) == 2  # With the deposit.


@of(EVERY)
def test_a_failure_that_kept_no_money_frees_its_key_for_any_request(
    service: Service, kind: type[Request]
) -> None:
    request = kind(service, "0")
    assert not was_replayed(request, 402)
    request.shop.deposit("100.00")
    for body, status in request.refused:
        assert not was_replayed(request, status, body=body)
    assert not was_replayed(request, body=request.bodies[1])
    assert was_replayed(request, body=request.bodies[1])


@of([LookupRequest, LinkRequest])
def test_a_first_request_that_does_not_end_in_time_is_a_409(
    make_service: MakeService,
    kind: type[LookupRequest | LinkRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(single_lookup, "WAIT_S", 0.05)
    request = kind(make_service(PROVISIONING_DEADLINE_S="1"))
    request.leave_running()
    reply = request.send()
    assert (reply.status_code, code_of(reply)) == (409, "IDEMPOTENCY_IN_PROGRESS")
    assert reply.json["error"]["details"] == {"retryable": True}
    assert reply.headers["Retry-After"] == "1"
    assert code_of(request.send(request.bodies[1])) == "IDEMPOTENCY_KEY_REUSED"


def test_a_key_may_hold_any_visible_ascii(service: Service) -> None:
    request = LookupRequest(service)
    for key in ("k", "!", "~", "k" * 255, "a/b=c+d,e;f"):
        assert not was_replayed(request, key=key)


@of(EVERY)
def test_any_other_key_is_refused(service: Service, kind: type[Request]) -> None:
    request = kind(service)
    for key in ("", " ", "two words", "k" * 256, "é", "tab\t", "\x7f"):
        assert list(fields_of(request.send(key=key))) == ["Idempotency-Key"], key
    assert Decimal(request.shop.balance()) == 100


def test_reads_ignore_the_key(acme: Tenant) -> None:
    assert acme.get("/v1/wallet", headers={"Idempotency-Key": "two words"}).status_code == 200


def test_the_body_and_the_query_make_the_same_request(service: Service) -> None:
    request = LookupRequest(service)
    request.send()
    reply = request.shop.look_up(ONE, **{"Idempotency-Key": KEY})
    assert (reply.status_code, reply.headers[REPLAYED]) == (200, "true")


def test_no_name_and_an_empty_name_are_the_same_request(service: Service) -> None:
    request = LinkRequest(service)
    unnamed = {"plan_id": request.bodies[0]["plan_id"]}
    assert not was_replayed(request, body=unnamed)
    for name in (None, ""):
        assert was_replayed(request, body={**unnamed, "name": name})


def test_a_repeated_change_shows_the_link_as_it_is_now(service: Service) -> None:
    request = ChangeRequest(service)
    first = request.send()
    assert request.shop.change(request.link, add=[FREE]).status_code == 200
    again = request.send()
    assert (again.status_code, again.headers[REPLAYED]) == (200, "true")
    shown = [len(each.json["data"]["activations"]) for each in (first, again)]
    assert shown == [3, 4]


def test_a_change_that_has_done_something_binds_its_key_with_its_failure(service: Service) -> None:
    request = ChangeRequest(service)
    plans = request.shop.plans
    body = {"add": [plans[MORE], plans[Fault.PROVIDER_ERROR.value]]}
    first, again = request.send(body), request.send(body)
    assert (first.status_code, first.headers.get(REPLAYED)) == (502, None)
    assert (again.status_code, again.headers[REPLAYED]) == (502, "true")
    assert again.headers["Retry-After"] == first.headers["Retry-After"] == "5"
    assert first.json["error"] == again.json["error"]
    assert code_of(request.send()) == "IDEMPOTENCY_KEY_REUSED"
    assert request.shop.balance() == "98.00"


def test_an_erased_lookup_is_not_replayed(make_service: MakeService) -> None:
    request = LookupRequest(make_service())
    assert not was_replayed(request)
    erase_months(request.service.container.vault, "9999-12")
    assert not was_replayed(request, 404)
    assert request.shop.balance() == "99.995"
