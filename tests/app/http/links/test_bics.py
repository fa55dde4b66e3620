"""Links on the scripted BICS, over HTTP: bought, read, topped up, suspended and slow."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest

from projections.audit.auditor import check_log
from tests.app.adapters.networks.bics.bics_lab import check_ledger, environment_of
from tests.app.http.buying import LINKS, Shop
from tests.app.http.service import Service, Tenant, code_of
from tests.plan_files import import_plans, plan
from tests.seeds import sqlite_seed
from tests.support.providers import bics
from tests.support.providers.bics import BicsServer
from tests.support.providers.server import FaultKind
from tests.workers.link_checks import Books

PLAN, MORE = "eu-1", "eu-3gb-30d"
SPONSOR = {"id": bics.SPONSORS[0], "name": "Atlas", "color": "#1F6FEB"}


class BicsShop(Shop):
    """An organization, its two plans and the account at BICS that they are bought from."""

    def __init__(self, tenant: Tenant, server: BicsServer) -> None:
        super().__init__(tenant, server)
        self.plans = {name: str(uuid4()) for name in (PLAN, MORE)}
        for name, plan_id in self.plans.items():
            size = bics.PLANS[name]
            terms = plan(name, data_mb=size.data_mb, validity_days=size.validity_days)
            more = {"id": plan_id, "provider_plan_id": name, "sponsor_profiles": [SPONSOR]}
            import_plans(self.service.container, {**terms, **more, "network": "bics"})
        self.service.until_projected("plans")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    directory = tmp_path_factory.mktemp("bics")
    with BicsServer(40) as server:
        sqlite_seed().copy(directory)
        service = Service(directory, **environment_of(server))
        yield BicsShop(service.start().tenant(), server)
        service.stop()


def test_a_link_is_bought_used_topped_up_and_suspended(shop: Shop) -> None:
    link = shop.link()
    assert link["iccid"] in shop.server.sims
    assert link["lpa_profile"].startswith("LPA:1$smdp.bics.example$BICS-")
    assert link["data_remaining_mb"] == 1_000
    detail = shop.read(link)
    assert (detail["network"], detail["capabilities"]) == (
        "bics",
        ["suspend", "remove_plan", "cancel"],
    )

    shop.server.forward(timedelta(hours=2))
    reply = shop.open("PUT", f"{LINKS}/{link['id']}/plans", json={"add": [shop.plans[MORE]]})
    assert reply.status_code == 200, reply.text
    detail = shop.read(link)
    assert (detail["data_used_mb"], detail["data_total_mb"]) == (40, 4_000)
    status = shop.read(link, "/network-status")
    assert (status["connected"], status["network"]) == (False, None)
    assert status["last_seen_at"] is not None

    first, second = detail["activations"]
    path = f"{LINKS}/{link['id']}"
    reply = shop.open("PUT", f"{path}/plans", json={"remove": [first["id"]]})
    assert reply.status_code == 200, reply.text
    assert [each["id"] for each in shop.read(link)["activations"]] == [second["id"]]
    assert shop.post(f"{path}/suspend").json["data"]["status"] == "suspended"
    assert shop.post(f"{path}/reactivate").json["data"]["status"] == "active"


def test_a_login_that_has_ended_is_nothing_that_a_partner_sees(shop: Shop) -> None:
    link = shop.link()
    shop.server.forget_tokens()
    assert shop.read(link)["status"] == "active"
    shop.server.forget_tokens()
    shop.link()


def test_a_refusal_gives_the_money_back(shop: Shop) -> None:
    before, free = shop.balance(), len(shop.server.endpoints)
    shop.server.fault(FaultKind.RATE_LIMITED, on="create", headers={"Retry-After": "0"})

    reply = shop.buy()

    assert (reply.status_code, code_of(reply)) == (502, "PROVISIONING_ERROR")
    assert shop.balance() == before
    assert len(shop.server.endpoints) == free


def test_the_books_are_right_in_the_end(shop: Shop) -> None:
    shop.link()

    assert check_log(shop.service.container.log).failures == []
    check_ledger(shop.server, Books(shop.service.container.log))
