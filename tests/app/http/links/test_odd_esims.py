"""What a network says oddly of one eSIM is nothing that the links of others notice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from domain.cause import utc_now
from tests.app.http.buying import LINKS, Shop
from tests.app.http.service import Service, Tenant
from tests.plan_files import import_plans, plan
from tests.seeds import sqlite_seed
from tests.support.providers.airalo import CLIENT_ID, CLIENT_SECRET, AiraloServer
from tests.support.providers.server import Request

PACKAGE = "brand-7days-1gb"


class AiraloShop(Shop):
    """An organization and its plan at Airalo."""

    def __init__(self, tenant: Tenant, server: AiraloServer) -> None:
        super().__init__(tenant, server)
        self.plans = {PACKAGE: str(uuid4())}
        own = {"id": self.plans[PACKAGE], "organization_id": str(tenant.id)}
        terms = plan(PACKAGE, provider_plan_id=PACKAGE, network="airalo", **own)
        import_plans(self.service.container, terms)
        self.service.until_projected("plans")


@pytest.fixture
def server() -> Iterator[AiraloServer]:
    with AiraloServer(utc_now) as made:
        made.offer(PACKAGE)
        yield made


@pytest.fixture
def service(server: AiraloServer, tmp_path: Path) -> Iterator[Service]:
    sqlite_seed().copy(tmp_path)
    running = Service(
        tmp_path,
        NETWORK_PROVIDER="airalo",
        SANDBOX="false",
        AIRALO_URL=server.url,
        AIRALO_CLIENT_ID=CLIENT_ID,
        AIRALO_CLIENT_SECRET=CLIENT_SECRET,
    ).start()
    yield running
    running.stop()


def test_a_package_without_a_number_makes_only_its_link_stale(
    service: Service, server: AiraloServer
) -> None:
    acme, rival = (AiraloShop(service.tenant(), server) for _ in range(2))
    odd, clean = acme.link(), rival.link()

    def spoil(request: Request, told: Any) -> Any:
        if request.route == "packages" and request.parts["iccid"] == odd["iccid"]:
            told["data"][0]["remaining"] = None
        return told

    server.mangle = spoil
    server.use(clean["iccid"], 512)
    for _ in range(6):
        reply = acme.get(f"{LINKS}/{odd['id']}")
        assert (reply.status_code, reply.json["meta"]["stale"]) == (200, True)

    assert rival.read(clean)["data_used_mb"] == 500
    assert rival.buy().status_code == 201
    assert acme.buy().status_code == 201
