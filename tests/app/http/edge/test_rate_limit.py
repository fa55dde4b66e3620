"""The rate limit over HTTP: what replies tell, what is refused, and who is not concerned."""

from collections.abc import Iterator
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of
from tests.installation import SetClock

NUMBER = "+14155552671"


@pytest.fixture
def limited(make_service: MakeService, clock: SetClock) -> Iterator[Service]:
    """A service where an organization may send five requests a minute."""
    clock.forward(seconds=18)
    return make_service(clock=clock, RATE_LIMIT_PER_MINUTE="5")


def told(reply: TestResponse) -> tuple[int, str | None]:
    return reply.status_code, reply.headers.get("RateLimit")


def set_own(tenant: Tenant, per_minute: int | None) -> None:
    cause = tenant.service.cause()
    tenant.change(lambda organization: organization.set_rate_limit(per_minute, cause))


def test_beyond_it_nothing_is_done_and_the_key_is_free(limited: Service, clock: SetClock) -> None:
    tenant, key = limited.tenant(), {"Idempotency-Key": "mine"}
    for path in ("/v1/wallet", "/v1/transactions/none") * 2:
        tenant.get(path)
    assert told(tenant.look_up(NUMBER)) == (200, '"default";r=0;t=42')
    codes = [code_of(tenant.look_up(each, **key)) for each in (NUMBER, "1")]
    assert codes == ["RATE_LIMITED", "VALIDATION_ERROR"], "the input is read first"
    clock.forward(seconds=42)
    assert tenant.look_up("+14155552672", **key).status_code == 200
    assert tenant.balance() == "99.99"


def test_a_limit_of_its_own_replaces_the_general_one(limited: Service) -> None:
    tenant = limited.tenant()
    set_own(tenant, 2)
    assert [tenant.get("/v1/wallet").status_code for _ in range(3)] == [200, 200, 429]
    set_own(tenant, 0)
    assert told(tenant.get("/v1/account")) == (200, None)
    assert tenant.get("/v1/account").json["data"]["limits"]["requests_per_minute"] is None
    set_own(tenant, None)
    assert told(tenant.get("/v1/account"))[1] == '"default";r=2;t=42', "with what was sent"
    assert tenant.get("/v1/account").json["data"]["limits"]["requests_per_minute"] == 5


def test_without_a_limit_nothing_is_told_and_nothing_is_counted(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service()
    tenant = service.tenant()

    def count(*_: Any) -> None:
        message = "nobody asked for a limit"
        raise AssertionError(message)

    monkeypatch.setattr(service.container.rate_limits, "admit", count)
    assert told(tenant.look_up(NUMBER)) == (200, None)
