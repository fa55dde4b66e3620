"""A held copy answers reads as of what it knows, and refuses everything else in words."""

import re

import pytest

from domain.cause import Cause
from domain.errors import InstallationHeld
from tests.app.http.buying import LINKS, Buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service

IN_PATH = re.compile(r"<(?:path:)?(\w+)>")
OF_OTHERS = {"/v1/deposits", "/networks/<name>/notifications"}  # No partner's token opens them.
SAFE = {"GET", "HEAD", "OPTIONS"}


@pytest.fixture
def service(make_service: MakeService) -> Service:
    return make_service().start()


@pytest.mark.any_database
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
