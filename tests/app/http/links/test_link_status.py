"""Suspending and reactivating a link, and where it is connected."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from app.adapters.networks.simulated.network import Fault
from domain.cause import utc_now
from domain.links.link import Link
from domain.links.network import NetworkStatus, ServingNetwork
from tests.app.http.buying import FREE, LINKS, MISSING, Buyer, buyer
from tests.app.http.service import Service, code_of, fields_of

pytestmark = pytest.mark.any_database

SWITCHES = ["suspend", "reactivate"]
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def acme(service: Service) -> Buyer:
    return buyer(service)


def switch(shop: Buyer, link: dict[str, Any], to: str, **options: Any) -> Any:
    return shop.post(f"{LINKS}/{link['id']}/{to}", **options)


def listed(shop: Buyer, status: str) -> list[str]:
    reply = shop.get(LINKS, query_string={"status": status})
    return [each["id"] for each in reply.json["data"]["data"]]


def deactivate(shop: Buyer, link: dict[str, Any]) -> None:
    """Let the network make a link inactive, behind our back."""
    parts = shop.service.container
    endpoint_id = parts.log.get(Link, UUID(link["id"])).endpoint_id
    assert endpoint_id is not None
    parts.bare_network.deactivate(endpoint_id)


def test_a_suspended_link_is_suspended_everywhere_and_active_again(service: Service) -> None:
    shop = buyer(service)
    link, other = shop.link(), shop.link(FREE)
    for to, status in (("suspend", "suspended"), ("reactivate", "active")):
        reply = switch(shop, link, to)
        assert reply.status_code == 200
        assert reply.json["data"].keys() == shop.read(link).json["data"].keys()
        assert reply.json["data"]["status"] == status
        assert shop.read(link).json["data"]["status"] == status
        live = shop.read(link, "/network-status", live="true").json["data"]
        assert live["status"] == status
        assert link["id"] in listed(shop, status)
    assert set(listed(shop, "active")) == {link["id"], other["id"]}
    assert listed(shop, "suspended") == []


@pytest.mark.parametrize(("to", "status"), [("suspend", "suspended"), ("reactivate", "active")])
def test_what_has_the_status_already_is_left_alone(acme: Buyer, to: str, status: str) -> None:
    link = acme.link(FREE)
    switch(acme, link, to)
    version = acme.service.container.log.get(Link, UUID(link["id"])).version
    again = switch(acme, link, to)
    assert (again.status_code, again.json["data"]["status"]) == (200, status)
    assert acme.service.container.log.get(Link, UUID(link["id"])).version == version


def test_an_inactive_link_is_active_again(acme: Buyer) -> None:
    link = acme.link(FREE)
    deactivate(acme, link)
    reply = switch(acme, link, "reactivate")
    assert (reply.status_code, reply.json["data"]["status"]) == (200, "active")


def test_the_path_takes_an_iccid(acme: Buyer) -> None:
    link = acme.link(FREE)
    reply = acme.post(f"{LINKS}/{link['iccid']}/suspend")
    assert (reply.status_code, reply.json["data"]["id"]) == (200, link["id"])


@pytest.mark.parametrize(("to", "status"), [("suspend", "suspended"), ("reactivate", "active")])
def test_a_network_that_cannot_be_read_is_told_all_the_same(
    acme: Buyer, to: str, status: str
) -> None:
    reply = switch(acme, acme.link(Fault.UNREACHABLE.value), to)
    assert (reply.status_code, reply.json["data"]["status"]) == (200, status)
    assert reply.json["meta"]["stale"] is True


def test_a_network_that_refuses_leaves_the_status(acme: Buyer) -> None:
    link, parts = acme.link(FREE), acme.service.container
    endpoint_id = parts.log.get(Link, UUID(link["id"])).endpoint_id
    assert endpoint_id is not None
    parts.bare_network.remove_endpoint(endpoint_id, timeout_s=1.0)
    reply = switch(acme, link, "suspend")
    assert (reply.status_code, code_of(reply)) == (502, "PROVISIONING_ERROR")
    assert reply.json["error"]["details"] == {"reason": "network_rejected", "retryable": False}
    assert "Retry-After" not in reply.headers
    assert acme.read(link).json["data"]["status"] == "active"


@pytest.mark.parametrize("to", SWITCHES)
@pytest.mark.parametrize(
    "body", [{}, {"json": {}}, {"data": b"", "headers": {"Content-Type": "text/plain"}}]
)
def test_no_body_and_an_empty_one_are_taken(acme: Buyer, to: str, body: dict[str, Any]) -> None:
    assert switch(acme, acme.link(FREE), to, **body).status_code == 200


@pytest.mark.parametrize("to", SWITCHES)
def test_any_other_body_is_refused(acme: Buyer, to: str) -> None:
    link = acme.link(FREE)
    assert list(fields_of(switch(acme, link, to, json={"why": "lost"}))) == ["why"]
    assert list(fields_of(switch(acme, link, to, json=[]))) == ["body"]
    for data, headers, status in (
        (b"{", JSON, 400),
        (b" " * 2_000_000, JSON, 413),
        (b"x", {"Content-Type": "text/plain"}, 415),
    ):
        assert switch(acme, link, to, data=data, headers=headers).status_code == status
        missing = {"id": MISSING}
        assert switch(acme, missing, to, data=data, headers=headers).status_code == 404
    assert acme.read(link).json["data"]["status"] == "active"


def connected_status() -> NetworkStatus:
    network = ServingNetwork("FR", "Orange", "208", "01", "5G")
    now = utc_now()
    return NetworkStatus("active", True, network, now, now)  # noqa: FBT003  # Of the port.


def test_a_status_has_the_fields_of_the_contract(acme: Buyer) -> None:
    link = acme.link(FREE)
    kept = connected_status()
    acme.service.container.readings.keep_status(acme.id, UUID(link["id"]), kept)
    reply = acme.read(link, "/network-status")
    moment = kept.as_of.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert reply.json["data"] == {
        "link_id": link["id"],
        "iccid": link["iccid"],
        "status": "active",
        "connected": True,
        "network": {
            "country_code": "FR",
            "operator": "Orange",
            "mcc": "208",
            "mnc": "01",
            "radio": "5G",
        },
        "last_seen_at": moment,
        "as_of": moment,
        "cached": True,
    }
    assert "stale" not in reply.json["meta"]


def test_a_status_is_kept_for_a_minute_unless_it_is_asked_for_live(acme: Buyer) -> None:
    link = acme.link(FREE)
    first = acme.read(link, "/network-status").json["data"]
    again = acme.read(link, "/network-status", live="false").json["data"]
    live = acme.read(link, "/network-status", live="1").json["data"]
    assert (first["cached"], again["cached"], live["cached"]) == (False, True, False)
    assert first["as_of"] == again["as_of"] < live["as_of"]
    assert (first["connected"], first["network"], first["last_seen_at"]) == (False, None, None)


def test_an_old_status_is_asked_for_again(acme: Buyer) -> None:
    link = acme.link(FREE)
    old = connected_status()
    old = NetworkStatus("active", True, old.network, None, old.as_of - timedelta(seconds=61))  # noqa: FBT003  # Of the port.
    acme.service.container.readings.keep_status(acme.id, UUID(link["id"]), old)
    data = acme.read(link, "/network-status").json["data"]
    assert (data["cached"], data["connected"]) == (False, False)


def test_out_of_reach_the_last_status_is_stale_and_a_live_one_a_503(acme: Buyer) -> None:
    link = acme.link(Fault.UNREACHABLE.value)
    never = acme.read(link, "/network-status")
    assert (never.status_code, never.json["meta"]["stale"]) == (200, True)
    assert (never.json["data"]["cached"], never.json["data"]["connected"]) == (True, False)
    old = connected_status()
    old = NetworkStatus("active", True, old.network, None, old.as_of - timedelta(seconds=61))  # noqa: FBT003  # Of the port.
    acme.service.container.readings.keep_status(acme.id, UUID(link["id"]), old)
    last = acme.read(link, "/network-status")
    assert (last.json["meta"]["stale"], last.json["data"]["connected"]) == (True, True)
    live = acme.read(link, "/network-status", live="true")
    assert (live.status_code, code_of(live)) == (503, "NETWORK_UNAVAILABLE")
    assert live.json["error"]["details"] == {"retryable": True}
    assert live.headers["Retry-After"] == "5"


@pytest.mark.parametrize("live", ["", "yes", "TRUE", "2", "on", ["true", "true"]])
def test_live_is_true_or_false(acme: Buyer, live: object) -> None:
    link = acme.link(FREE)
    assert list(fields_of(acme.read(link, "/network-status", live=live))) == ["live"]
