"""Links on the scripted eSIM Go, over HTTP: bought, read, topped up, suspended, and told of."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.adapters.remote.api import RemoteRules
from app.bootstrap import providers
from domain.catalogue.file_errors import FileRefused
from domain.cause import utc_now
from domain.links import notifications
from domain.links.importing import ImportedLinks
from domain.links.link import Link
from domain.links.network import ProviderPlan
from projections.audit.auditor import check_log
from tests import plan_files
from tests.app.http.buying import LINKS, Shop
from tests.app.http.service import Service, Tenant, code_of
from tests.plan_files import import_plans, plan
from tests.seeds import sqlite_seed
from tests.support.providers.esimgo import KEY, MB, EsimGoServer, signature
from tests.support.providers.server import FaultKind

BUNDLE, MORE = "esim_1GB_7D_FR_V2", "esim_3GB_30D_FR_V2"


class EsimGoShop(Shop):
    """An organization, its two plans and the account at eSIM Go that they are bought from."""

    def __init__(self, tenant: Tenant, server: EsimGoServer) -> None:
        super().__init__(tenant, server)
        self.plans = {name: str(uuid4()) for name in (BUNDLE, MORE)}
        for name, plan_id in self.plans.items():
            server.offer(name)
            terms = {"provider_plan_id": name, "network": "esimgo", "data_mb": 1_000}
            import_plans(self.service.container, {**plan(name, **terms), "id": plan_id})
        self.service.until_projected("plans")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    directory = tmp_path_factory.mktemp("esimgo")
    with EsimGoServer(utc_now) as server, pytest.MonkeyPatch.context() as patched:
        patched.setattr(providers, "ESIMGO", RemoteRules())  # Tests do not wait for its pace.
        sqlite_seed().copy(directory)
        service = Service(
            directory,
            NETWORK_PROVIDER="esimgo",
            SANDBOX="false",
            ESIMGO_URL=server.url,
            ESIMGO_API_KEY=KEY,
            ESIMGO_REFUNDS="true",
        )
        yield EsimGoShop(service.start().tenant(), server)
        service.stop()


def test_a_link_is_bought_and_read(shop: Shop) -> None:
    link = shop.link()

    assert link["iccid"] in shop.server.held
    assert link["lpa_profile"].startswith("LPA:1$rsp.esim.example$MATCH-")
    assert link["data_remaining_mb"] == 1_000
    assert shop.read(link)["installed_at"] is None
    status = shop.read(link, "/network-status")
    assert (status["connected"], status["network"]) == (False, None)


def test_what_a_device_uses_is_told_by_a_notification(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "FRESH", timedelta(0))
    link = shop.link()
    shop.server.use(link["iccid"], 250 * MB)
    body = shop.server.callback(link["iccid"], "FirstUse")

    for _ in range(2):
        reply = shop.service.client.post(
            "/networks/esimgo/notifications", data=body, headers=signature(body)
        )
        assert reply.status_code == 204

    known = shop.service.container.log.get(Link, UUID(link["id"]))
    assert known.first_used_at is not None
    assert known.installed_at is not None
    assert shop.read(link)["data_used_mb"] == 250
    status = shop.read(link, "/network-status")
    assert status["connected"]
    assert status["network"] == {"country_code": "FR", "operator": "Orange France"}


def test_a_topup_is_shown_by_the_very_next_read(shop: Shop) -> None:
    link = shop.link()

    reply = shop.open("PUT", f"{LINKS}/{link['id']}/plans", json={"add": [shop.plans[MORE]]})

    assert reply.status_code == 200
    assert shop.read(link)["data_total_mb"] == 2_000
    assert len(shop.server.esims[link["iccid"]].present) == 2


def test_an_esim_that_another_system_has_bought_is_taken_over(shop: Shop) -> None:
    parts = shop.service.container
    network: Any = parts.networks.of(parts.networks.names[0])
    iccid = network.order(ProviderPlan(BUNDLE, 1_000, 7), "elsewhere", timeout_s=5.0).iccid
    bought = {"plan_id": shop.plans[BUNDLE], "bought_at": "2025-11-01T10:00:00Z"}
    entry = {"organization_id": str(shop.id), "iccid": iccid, "plans": [bought]}

    def take_over(**more: str) -> ImportedLinks:
        return plan_files.take_over(parts, shop.service.cause(), {**entry, **more})

    with pytest.raises(FileRefused, match=r"endpoint_id: must be the ICCID on this network"):
        take_over(endpoint_id="1")
    assert take_over() == ImportedLinks(created=1, unchanged=0)
    assert take_over(endpoint_id=iccid) == ImportedLinks(created=0, unchanged=1)

    shop.service.until_projected("links")
    link = shop.read({"id": iccid})
    assert (link["lpa_profile"], link["data_remaining_mb"]) == (
        network.lpa(iccid, timeout_s=5.0).lpa,
        1_000,
    )
    before = shop.balance()
    reply = shop.open("PUT", f"{LINKS}/{link['id']}/plans", json={"add": [shop.plans[MORE]]})
    assert (reply.status_code, shop.read(link)["data_total_mb"]) == (200, 2_000)
    assert shop.balance() != before
    assert shop.open("DELETE", f"{LINKS}/{link['id']}").json["data"]["status"] == "ended"


def test_the_only_plan_of_an_esim_that_is_not_installed_stays(shop: Shop) -> None:
    link = shop.link()
    (activation,) = shop.read(link)["activations"]
    before = shop.balance()

    reply = shop.open("PUT", f"{LINKS}/{link['id']}/plans", json={"remove": [activation["id"]]})

    assert reply.status_code == 502
    assert shop.balance() == before
    assert link["iccid"] in shop.server.held


def test_a_suspension_by_policy_is_told_and_stays(shop: Shop) -> None:
    link = shop.link()
    assert shop.post(f"{LINKS}/{link['id']}/suspend").json["data"]["status"] == "suspended"
    assert shop.post(f"{LINKS}/{link['id']}/reactivate").json["data"]["status"] == "active"

    shop.server.suspend_by_policy(link["iccid"])
    reply = shop.post(f"{LINKS}/{link['id']}/reactivate")

    assert (reply.status_code, code_of(reply)) == (502, "PROVISIONING_ERROR")
    assert shop.read(link)["status"] == "suspended"


@pytest.mark.soak  # It waits until the call of 5 s is over; the saga's own tests do not.
def test_a_lost_reply_is_no_lost_link(shop: Shop) -> None:
    sold = len(shop.server.sales)
    shop.server.fault(FaultKind.RESET_AFTER, on="order")

    link = shop.link()

    assert len(shop.server.sales) == sold + 1
    assert shop.server.sales[-1].iccid == link["iccid"]


def test_the_books_are_right_in_the_end(shop: Shop) -> None:
    shop.link()

    assert check_log(shop.service.container.log).failures == []
    links = shop.get(LINKS, query_string={"per_page": "100"}).json["data"]["data"]
    assert {each["iccid"] for each in links} == shop.server.held
