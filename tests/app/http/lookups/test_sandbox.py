"""Each failure of a lookup that a partner can ask for."""

import pytest

from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of

UNAVAILABLE = "+15005550001"
SLOW = "+15005550002"
MALFORMED = "+15005550003"
SECOND_ATTEMPT = "+15005550004"


@pytest.fixture
def tenant(service: Service) -> Tenant:
    return service.tenant(balance="1.00")


@pytest.mark.parametrize("number", [UNAVAILABLE, MALFORMED])
def test_an_outage_is_a_503_that_costs_nothing(tenant: Tenant, number: str) -> None:
    reply = tenant.look_up(number)
    assert (reply.status_code, code_of(reply)) == (503, "NUMBER_LOOKUP_UNAVAILABLE")
    assert reply.json["error"]["details"] == {"retryable": True}
    assert reply.headers["Retry-After"] == "5"
    assert tenant.balance() == "1.00"


def test_an_outage_of_the_sandbox_is_none_of_the_service(tenant: Tenant) -> None:
    for _ in range(10):
        tenant.look_up(UNAVAILABLE)
    assert tenant.service.client.get("/number-lookup/health").status_code == 200


@pytest.mark.any_database
def test_a_slow_number_answers_after_three_seconds(tenant: Tenant) -> None:
    reply = tenant.look_up(SLOW)
    assert reply.status_code == 200
    assert 3_000 <= reply.json["meta"]["response_time_ms"] < 10_000


def test_a_number_that_answers_at_the_second_attempt(tenant: Tenant) -> None:
    assert [tenant.look_up(SECOND_ATTEMPT).status_code for _ in range(3)] == [503, 200, 200]


def test_a_job_makes_the_second_attempt_by_itself(tenant: Tenant) -> None:
    (item,) = tenant.finished_job([SECOND_ATTEMPT])["items"]
    assert item["status"] == "completed"


def test_sandbox_answers_skip_the_cache(tenant: Tenant) -> None:
    tenant.look_up(SECOND_ATTEMPT)
    sources = [tenant.look_up(SECOND_ATTEMPT).json["meta"]["source"] for _ in range(2)]
    assert sources == ["live", "live"]


def test_without_the_sandbox_these_are_numbers_like_others(make_service: MakeService) -> None:
    assert make_service(SANDBOX="false").tenant().look_up(UNAVAILABLE).status_code == 200
