"""What still answers on a held copy, and while the clock is wrong; all else is refused in words."""

import re
from datetime import timedelta

import pytest

from domain.cause import Cause, utc_now
from domain.errors import InstallationHeld
from tests.app.http.buying import LINKS, Buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service

IN_PATH = re.compile(r"<(?:path:)?(\w+)>")
OF_OTHERS = {"/v1/deposits", "/networks/<name>/notifications"}  # No partner's token opens them.
SAFE = {"GET", "HEAD", "OPTIONS"}
REASON = "the clock of this machine is 3600.0 s behind the database's"


@pytest.fixture
def service(make_service: MakeService) -> Service:
    return make_service().start()


def test_a_held_copy_answers_reads_and_refuses_the_rest(service: Service) -> None:
    buyer = Buyer(service.tenant())
    link = buyer.link()
    lookup = buyer.look_up("+971508245915").json["meta"]["lookup_id"]
    parts = service.container
    parts.gate.switch(Cause(parts.clock(), "by hand"), held=True)
    refused = 0
    for rule in service.app.url_map.iter_rules():
        path = IN_PATH.sub(link["id"], rule.rule)
        for method in sorted((rule.methods or set()) - SAFE):
            if rule.rule in OF_OTHERS or rule.rule.endswith("/auth/token"):
                continue
            reply = buyer.open(method, path, json={})
            assert reply.status_code == 503, (method, path, reply.text)
            assert reply.json["error"]["message"] == InstallationHeld.message
            assert reply.json["error"]["code"] == "SERVICE_UNAVAILABLE"
            refused += 1
    assert refused > 15
    notified = service.client.post("/networks/esimgo/notifications", data=b"{}")
    assert (notified.status_code, InstallationHeld.message in notified.text) == (503, True)
    for path, status in (
        (LINKS, 200),
        (f"{LINKS}/{link['id']}", 200),
        (f"{LINKS}/{link['id']}/history", 200),
        (f"{LINKS}/{link['id']}/network-status?live=true", 503),
        ("/v1/wallet", 200),
        ("/v1/transactions", 200),
        (f"/number-lookup/lookups/{lookup}", 200),
        ("/readyz", 200),
    ):
        reply = buyer.get(path)
        assert reply.status_code == status, path
        assert status == 200 or InstallationHeld.message in reply.text
    assert buyer.get("/readyz").json["held"] is True
    read = buyer.get(f"{LINKS}/{link['id']}").json
    assert read["data"]["capabilities"] == link["capabilities"]
    head = parts.log.head()
    parts.gate.switch(Cause(parts.clock(), "by hand"), held=False)
    assert parts.log.head() == head + 1, "nothing else was written"
    assert buyer.look_up("+971508245915").status_code == 200


def test_nothing_but_probes_is_answered_until_the_clock_is_right(service: Service) -> None:
    buyer, gate = Buyer(service.tenant()), service.container.gate
    gate.query = lambda: utc_now() + timedelta(hours=1)  # SQLite has no clock.
    gate.check()
    asked = [("GET", "/v1/wallet"), ("POST", LINKS), ("POST", "/number-lookup"), ("GET", LINKS)]
    for method, path in asked:
        reply = buyer.open(method, path, headers={"Authorization": "Bearer no.token.atall"})
        assert reply.status_code == 503
        assert reply.json["error"]["message"] == REASON
        assert reply.json["error"]["code"] == "SERVICE_UNAVAILABLE"
        assert reply.json["error"]["details"] == {"retryable": True}
        assert reply.headers["Retry-After"]
    assert service.client.post("/networks/esimgo/notifications", data=b"{}").status_code == 503
    token = service.client.post("/auth/token", data={"grant_type": "client_credentials"})
    assert (token.status_code, token.json["error"]) == (503, "server_error")
    ready = service.client.get("/readyz")
    assert (ready.status_code, ready.json["missing"]) == (503, [REASON])
    assert ready.json["clock_offset_seconds"] == pytest.approx(3600, abs=1)
    health = service.client.get("/number-lookup/health")
    assert (health.status_code, health.json["ok"]) == (503, False)
    for path in ("/livez", "/.well-known/jwks.json", "/openapi.json"):
        assert service.client.get(path).status_code == 200, path
    gate.query = utc_now
    gate.check()
    assert service.client.get("/readyz").status_code == 200
    assert buyer.look_up("+971508245915").status_code == 200
