"""Renaming, ending and cancelling a link, and what is left of one that has ended."""

from typing import Any
from uuid import UUID

import pytest

from app.adapters.networks.simulated.network import Fault
from domain.cause import utc_now
from domain.links.link import Link
from domain.links.network import Usage
from tests.app.http.buying import FREE, LINKS, MISSING, MORE, Buyer, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, code_of, fields_of

pytestmark = pytest.mark.any_database

ENDS = [("DELETE", ""), ("POST", "/cancel")]


@pytest.fixture(scope="module")
def acme(service: Service) -> Buyer:
    return buyer(service)


def rename(shop: Buyer, link: dict[str, Any], **body: object) -> Any:
    return shop.open("PATCH", f"{LINKS}/{link['id']}", json=body)


def end(shop: Buyer, link: dict[str, Any], how: tuple[str, str] = ENDS[0]) -> Any:
    return shop.open(how[0], f"{LINKS}/{link['id']}{how[1]}")


def cancel(shop: Buyer, link: dict[str, Any]) -> Any:
    return end(shop, link, ENDS[1])


def balance(shop: Buyer) -> str:
    found: str = shop.get("/v1/wallet").json["data"]["balance"]
    return found


def found_by(shop: Buyer, search: str) -> list[str]:
    reply = shop.get(LINKS, query_string={"search": search})
    return [each["id"] for each in reply.json["data"]["data"]]


def test_a_new_name_is_shown_listed_and_found_and_the_old_one_is_not(acme: Buyer) -> None:
    link = acme.link(FREE, name="Van Ærø 12")
    reply = rename(acme, link, name="Lorry ½ 13")
    assert (reply.status_code, reply.json["data"]["name"]) == (200, "Lorry ½ 13")
    assert reply.json["data"].keys() == acme.read(link).json["data"].keys()
    assert found_by(acme, "lorry ½") == found_by(acme, link["iccid"]) == [link["id"]]
    assert found_by(acme, "van ærø") == []
    assert acme.read(link).json["data"]["name"] == "Lorry ½ 13"


@pytest.mark.parametrize("empty", [None, ""])
def test_a_name_is_cleared(acme: Buyer, empty: str | None) -> None:
    link = acme.link(FREE, name="Gone soon")
    assert rename(acme, link, name=empty).json["data"]["name"] is None
    assert found_by(acme, "gone soon") == []
    assert found_by(acme, link["id"]) == [link["id"]]


def test_the_same_name_again_is_no_event(acme: Buyer) -> None:
    link = acme.link(FREE, name="Same")
    log = acme.service.container.log
    version = log.get(Link, UUID(link["id"])).version
    assert rename(acme, link, name="Same").status_code == 200
    assert log.get(Link, UUID(link["id"])).version == version


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": 7}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"name": "a\nb"}, "name"),
    ],
)
def test_a_name_that_is_none_is_refused(acme: Buyer, body: dict[str, Any], field: str) -> None:
    link = acme.link(FREE)
    assert list(fields_of(rename(acme, link, **body))) == [field]
    assert list(fields_of(rename(acme, link, name="x", status="active"))) == ["status"]


def test_a_replay_of_the_creation_shows_the_new_name_and_knows_the_old_request(
    acme: Buyer,
) -> None:
    link = acme.create(FREE, key="renamed-1", name="First").json["data"]
    rename(acme, link, name="Second")
    again = acme.create(FREE, key="renamed-1", name="First")
    assert (again.status_code, again.json["data"]["name"]) == (201, "Second")
    assert acme.create(FREE, key="renamed-1", name="Second").status_code == 422


def test_an_ended_link_stays_in_the_list_and_the_network_is_not_asked(acme: Buyer) -> None:
    link = acme.link(name="To end")
    acme.read(link)
    before = balance(acme)
    reply = end(acme, link)
    data = reply.json["data"]
    assert (reply.status_code, data["status"], "stale" in reply.json["meta"]) == (
        200,
        "ended",
        False,
    )
    assert data.keys() == acme.read(link).json["data"].keys()
    assert (data["iccid"], data["name"]) == (link["iccid"], "To end")
    assert data["lpa_profile"] == link["lpa_profile"]
    assert acme.get(f"{LINKS}/{link['iccid']}").json["data"]["id"] == link["id"]
    status = acme.read(link, "/network-status", live="true").json["data"]
    told = {name: status[name] for name in ("status", "connected", "network", "cached")}
    assert told == {"status": "ended", "connected": False, "network": None, "cached": False}
    assert acme.read(link, "/network-status").json["data"]["cached"] is True
    ended = acme.get(LINKS, query_string={"status": "ended", "per_page": 100}).json["data"]
    assert link["id"] in {each["id"] for each in ended["data"]}
    assert ended["meta"]["total"] == len(ended["data"])
    active = acme.get(LINKS, query_string={"status": "active", "per_page": 100}).json["data"]
    assert link["id"] not in {each["id"] for each in active["data"]}
    assert balance(acme) == before
    assert rename(acme, link, name="Ended").json["data"]["name"] == "Ended"
    assert end(acme, link).json["data"]["status"] == "ended"


def test_a_cancelled_link_has_its_money_back_and_keeps_its_history(acme: Buyer) -> None:
    before = balance(acme)
    link = acme.link()
    assert acme.change(link, add=[MORE]).status_code == 200
    reply = cancel(acme, link)
    assert (reply.status_code, reply.json["data"]["status"]) == (200, "ended")
    assert balance(acme) == before
    entries = acme.read(link, "/history").json["data"]["data"]
    assert [each["kind"] for each in entries] == ["refund", "refund", "topup", "activation"]
    back = {each["refund_of"]: each for each in entries[:2]}
    for charge in entries[2:]:
        refund = back[charge["id"]]
        assert (refund["amount"], refund["reason"]) == (charge["amount"], "cancelled")
        assert (refund["plan_name"], refund["reference"]) == (
            charge["plan_name"],
            charge["reference"],
        )
    assert cancel(acme, link).json["data"]["status"] == "ended"
    assert end(acme, link).json["data"]["status"] == "ended"
    assert balance(acme) == before


def test_nothing_more_is_done_with_an_ended_link(acme: Buyer) -> None:
    link = acme.link(FREE)
    end(acme, link)
    for reply in (
        acme.change(link, add=[MORE]),
        acme.post(f"{LINKS}/{link['id']}/suspend"),
        acme.post(f"{LINKS}/{link['id']}/reactivate"),
        cancel(acme, link),
    ):
        assert (reply.status_code, code_of(reply)) == (409, "LINK_ENDED")
        assert reply.json["error"]["details"] == {"retryable": False}
    assert acme.read(link, "/topup-plans").json["data"] == []


def test_a_link_in_use_is_not_cancelled(acme: Buyer, monkeypatch: pytest.MonkeyPatch) -> None:
    link = acme.link()
    used = Usage("active", [], utc_now(), installed_at=utc_now())
    network = acme.service.container.bare_network
    monkeypatch.setattr(network, "usage", lambda *_, **__: used)
    reply = cancel(acme, link)
    assert (reply.status_code, code_of(reply)) == (409, "LINK_IN_USE")
    assert acme.read(link).json["data"]["installed_at"] is not None


def test_a_network_out_of_reach_cancels_nothing(acme: Buyer) -> None:
    link = acme.link(Fault.UNREACHABLE.value)
    reply = cancel(acme, link)
    assert (reply.status_code, code_of(reply)) == (503, "NETWORK_UNAVAILABLE")
    assert "Retry-After" in reply.headers


def test_by_default_the_time_to_cancel_is_over(make_service: MakeService) -> None:
    shop = buyer(make_service(LINK_CANCEL_DAYS="0").start())
    reply = cancel(shop, shop.link(FREE))
    assert (reply.status_code, code_of(reply)) == (409, "CANCEL_WINDOW_OVER")


@pytest.mark.parametrize("how", ENDS)
def test_the_path_takes_an_iccid(acme: Buyer, how: tuple[str, str]) -> None:
    link = acme.link(FREE)
    reply = acme.open(how[0], f"{LINKS}/{link['iccid']}{how[1]}")
    assert (reply.status_code, reply.json["data"]["id"]) == (200, link["id"])


@pytest.mark.parametrize("how", [*ENDS, ("PATCH", "")])
def test_nobody_ends_what_is_not_theirs(
    service: Service, acme: Buyer, how: tuple[str, str]
) -> None:
    link, rival = acme.link(FREE), buyer(service)
    for path in (link["id"], link["iccid"], MISSING, "nothing"):
        reply = rival.open(how[0], f"{LINKS}/{path}{how[1]}", json={"name": "mine"})
        assert reply.status_code == 404
    assert acme.read(link).json["data"]["status"] == "active"


def test_any_body_of_a_cancellation_is_refused(acme: Buyer) -> None:
    link = acme.link(FREE)
    reply = acme.post(f"{LINKS}/{link['id']}/cancel", json={"why": "lost"})
    assert list(fields_of(reply)) == ["why"]
    assert acme.read(link).json["data"]["status"] == "active"


def test_a_topped_up_link_says_who_did_what_and_what_came_back(acme: Buyer) -> None:
    """As `links show` reads it: the end with its refunds, then the wallet's entries."""
    link = acme.link(name="Told")
    acme.change(link, add=[MORE])
    cancel(acme, link)
    parts = acme.service.container
    acme.service.until_projected("timelines")
    with parts.views.reading() as connection:
        told = parts.timelines.of_link(connection, UUID(link["id"]))
    last = [each for each in told if each.what != "link.installed"][-5:]
    assert [each.what for each in last] == [
        "link.end_requested",
        "link.ended",
        "plan_change.returned",
        "wallet.refunded",
        "wallet.refunded",
    ]
    assert last[0].facts["kind"] == "cancel"
    assert last[1].facts["reason"] == "cancelled"
    assert [each["refunded"] for each in last[1].facts["refunds"]] == ["4.50", "2.00"]
    assert [each.facts["amount"] for each in last[3:]] == ["4.50", "2.00"]
