"""Every reply has the envelope, an id, and headers that keep it safe."""

from uuid import UUID

import pytest

from tests.app.http.service import Tenant

SAFE = "a 4f.x_y~z:1/2@3=4+5-6 req-00f067aa-0ba9-42b7-9a2c-123456789012 2026-11-26T12:00:00.000Z"
SAFE += " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 " + "r" * 128
SAFE += (
    " 4bf92f0123456789a6a3ce929d0e0e47 01ARZ3NDEKTSV4RRFFQ69G5FAV order-123456789 2026-11-26/r-17"
)


@pytest.mark.parametrize("given", SAFE.split())
def test_a_request_id_is_sent_back(acme: Tenant, given: str) -> None:
    reply = acme.get("/v1/wallet", headers={"X-Request-Id": given})
    assert reply.headers["X-Request-Id"] == given
    assert reply.json["meta"]["request_id"] == given


UNSAFE = f"""
|{"r" * 129}|two words|quo"te|tab\tbed|é|a,b|+447400123456|8944100000000000017|cls_{"x" * 43}
|eyJhbGciOiJFUzI1NiJ9.e30.c2ln|signup-+447400123456|signup-+44-7400-123456|tel:447400123456
|sim/8944100000000000017|imsi=234151234567890|LPA:1-smdp.example-ABC|my-opk_{"x" * 43}
|key=whsec_{"x" * 43}|t:eyJhbGciOiJFUzI1NiJ9.e30.c2ln
|tel447911123888|447911123888x|44-7911-123888|44.7911/123:888|4-4-7-9-1-1-1-2-3-8-8-8
|44--7911--123888|msisdn_44_7911_123_888|+44~7911=123
|iccid8944100000000000017F|8944-1000-0000-0000-017
|{"0" * 20}447911123888|{"00f067aa-0ba9-42b7-9a2c-447911123888"}-447911123888
"""


@pytest.mark.parametrize("given", UNSAFE.replace("\n", "").split("|"))
def test_an_unsafe_request_id_is_replaced(acme: Tenant, given: str) -> None:
    reply = acme.get("/v1/wallet", headers={"X-Request-Id": given})
    made = reply.headers["X-Request-Id"]
    assert str(UUID(made)) == made == reply.json["meta"]["request_id"]


def test_the_request_id_is_stored_with_what_the_request_causes(acme: Tenant) -> None:
    log = acme.service.container.log
    before = log.head()
    acme.look_up("+14155552671", **{"X-Request-Id": "cause-of-it-all"})
    caused = {recorded.event.request_id for recorded in log.read(before, 10)}
    assert caused == {"cause-of-it-all"}
