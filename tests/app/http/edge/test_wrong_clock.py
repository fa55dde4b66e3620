"""While the clock is wrong no request with a token is judged; probes and documents answer."""

from datetime import timedelta

import pytest

from domain.cause import utc_now
from tests.app.http.buying import LINKS, Buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service

REASON = "the clock of this machine is 3600.0 s behind the database's"
HOUR = timedelta(hours=1)


@pytest.fixture
def service(make_service: MakeService) -> Service:
    return make_service().start()


def test_nothing_but_probes_is_answered_until_the_clock_is_right(service: Service) -> None:
    buyer, gate = Buyer(service.tenant()), service.container.gate
    gate.query = lambda: utc_now() + HOUR  # SQLite has no clock.
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
