"""How a partner alone provokes each error code in a sandbox: none is seen first in production.

CONFIG_ERROR and INTERNAL_ERROR come by a script alone: nothing that a partner sends causes them.
"""

from collections.abc import Callable

import pytest
from werkzeug.test import TestResponse

from app.bootstrap.sandbox import FAILURES
from app.http.edge.problems import CODES
from tests.app.http.buying import BASIC, FREE, LINKS, MISSING, Buyer, buyer
from tests.app.http.service import Service, code_of
from tests.net.recording import RECORDINGS

WALLET, VALID = "/v1/wallet", "+14155550100"

# The server refuses these before there is a request; `tests/net` sends it the bytes.
BY_THE_SERVER = {
    *("REQUEST_TIMEOUT", "REQUEST_URI_TOO_LONG"),
    *("REQUEST_HEADER_FIELDS_TOO_LARGE", "NOT_IMPLEMENTED"),
}


def of_another_scope(shop: Buyer) -> TestResponse:
    token = shop.service.token(shop.client_id, scope="plans")
    return shop.get(WALLET, headers={"Authorization": f"Bearer {token}"})


def of_a_disabled_webhook(shop: Buyer) -> TestResponse:
    path = f"/v1/webhooks/{shop.webhook()}"
    assert shop.open("PATCH", path, json={"enabled": False}).status_code == 200
    return shop.post(f"{path}/test")


def of_an_ended_link(shop: Buyer) -> TestResponse:
    path = f"{LINKS}/{shop.link(FREE)['id']}"
    assert shop.open("DELETE", path).status_code == 200
    return shop.post(f"{path}/suspend")


OTHERWISE: dict[str, Callable[[Buyer], TestResponse]] = {
    "BAD_REQUEST": lambda it: it.post(LINKS, data=b"{", content_type="application/json"),
    "UNSUPPORTED_MEDIA_TYPE": lambda it: it.post(LINKS, data=b"{}", content_type="text/plain"),
    "PAYLOAD_TOO_LARGE": lambda it: it.post(LINKS, json={"name": "x" * (1 << 20)}),
    "VALIDATION_ERROR": lambda it: it.post(LINKS, json={}),
    "NOT_FOUND": lambda it: it.get(f"{LINKS}/{MISSING}"),
    "METHOD_NOT_ALLOWED": lambda it: it.open("DELETE", WALLET),
    "NOT_ACCEPTABLE": lambda it: it.get(
        f"{LINKS}/{it.link(FREE)['id']}/qr", headers={"Accept": "text/html"}
    ),
    "INSUFFICIENT_SCOPE": of_another_scope,
    "IDEMPOTENCY_KEY_REUSED": lambda it: [it.create(each, "k-1") for each in (FREE, BASIC)][1],
    "JOB_FINISHED": lambda it: it.open(
        "DELETE", f"/number-lookup/bulk/{it.finished_job([VALID])['job_id']}"
    ),
    "LAST_CLIENT": lambda it: it.open("DELETE", f"/v1/account/clients/{it.client_id}"),
    "LINK_ENDED": of_an_ended_link,
    "WEBHOOK_LIMIT": lambda it: [
        it.post("/v1/webhooks", json={"url": f"https://hooks.example/{each}"}) for each in range(11)
    ][10],
    "WEBHOOK_DISABLED": of_a_disabled_webhook,
    "PROVISIONING_FAILED": lambda it: it.create("sandbox-no-endpoint"),
    "PROVISIONING_ERROR": lambda it: it.create("sandbox-provider-error"),
    "NETWORK_UNAVAILABLE": lambda it: it.read(
        it.link("sandbox-unreachable"), "/network-status", live="true"
    ),
    "NUMBER_LOOKUP_UNAVAILABLE": lambda it: it.look_up("+15005550001"),
}


def test_a_partner_alone_can_provoke_every_code() -> None:
    scripted = {each.upper() for each in FAILURES["request"]}
    assert sorted([*scripted, *OTHERWISE, *BY_THE_SERVER]) == CODES
    told = "".join(each.read_text() for each in (RECORDINGS / "server").glob("*.txt"))
    assert [each for each in BY_THE_SERVER if f'"{each}"' not in told] == []


@pytest.mark.any_database
@pytest.mark.parametrize("code", OTHERWISE)
def test_a_code_needs_no_script(service: Service, code: str) -> None:
    assert code_of(OTHERWISE[code](buyer(service))) == code
