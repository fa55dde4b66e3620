"""The rate limit over HTTP: what replies tell, what is refused, and who is not concerned."""

from collections.abc import Iterator

import pytest
from werkzeug.test import TestResponse

from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, code_of
from tests.installation import SetClock

NUMBER = "+14155552671"


@pytest.fixture
def limited(make_service: MakeService, clock: SetClock) -> Iterator[Service]:
    """A service where an organization may send five requests a minute."""
    clock.forward(seconds=18)
    return make_service(clock=clock, RATE_LIMIT_PER_MINUTE="5")


def told(reply: TestResponse) -> tuple[int, str | None]:
    return reply.status_code, reply.headers.get("RateLimit")


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


def test_a_limit_of_its_own_replaces_the_general_one_and_0_is_none(limited: Service) -> None:
    tenant, shown = limited.tenant(), []
    for own in (2, 0, None):
        cause = limited.cause()
        tenant.change(lambda it, own=own, cause=cause: it.set_rate_limit(own, cause))
        reply = tenant.get("/v1/account")
        limits = reply.json["data"]["limits"]
        shown.append((*told(reply), limits["requests_per_minute"]))
    assert shown == [
        (200, '"default";r=1;t=42', 2),
        (200, None, None),
        (200, '"default";r=3;t=42', 5),  # With what was sent before.
    ]
