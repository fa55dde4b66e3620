"""Reading links: one by its id or its ICCID, all of them as a list."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from app.adapters.networks.simulated.network import Fault
from tests.app.http.buying import FREE, LINKS, MISSING, Buyer, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import code_of, fields_of


def test_what_names_no_link_is_a_404(acme: Buyer) -> None:
    link = acme.link(FREE)
    for wrong in (
        MISSING,
        str(acme.id),
        acme.plans[FREE],
        link["activations"][0]["id"],
        link["id"].replace("-", ""),
        "{" + link["id"] + "}",
        f"urn:uuid:{link['id']}",
        f"{link['id']}%20",
        "1" * 17,
        "1" * 18,
        "1" * 22,
        "1" * 23,
        f"{link['iccid']}%0A",
        f"+{link['iccid']}",
        "".join(chr(0x660 + int(digit)) for digit in link["iccid"]),
        "none",
    ):
        reply = acme.get(f"{LINKS}/{wrong}")
        assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND"), wrong
    assert acme.create(Fault.NO_ENDPOINT.value).status_code == 502
    failed = acme.transactions(kind="refund")[0]["reference"]["id"]
    assert acme.get(f"{LINKS}/{failed}").status_code == 404


@pytest.mark.any_database
def test_a_link_says_whether_and_until_when_it_can_be_cancelled(
    make_service: MakeService, acme: Buyer
) -> None:
    def said(shop: Buyer, link: dict[str, Any]) -> tuple[bool, str | None]:
        shop.service.until_projected("links")
        [listed] = shop.get(f"{LINKS}?search={link['id']}").json["data"]["data"]
        shown = [
            ("cancel" in each["capabilities"], each["cancellable_until"])
            for each in (link, listed, shop.read(link).json["data"])
        ]
        assert shown[0] == shown[1] == shown[2]
        return shown[0]

    link = acme.link(FREE)
    bought_at = datetime.fromisoformat(link["created_at"])
    is_able, until = said(acme, link)
    assert (is_able, datetime.fromisoformat(until or "")) == (True, bought_at + timedelta(days=14))
    play = f"/v1/sandbox/links/{link['id']}"
    assert said(acme, acme.post(play, json={"action": "install"}).json["data"]) == (True, None)
    ended = acme.open("DELETE", f"{LINKS}/{acme.link(FREE)['id']}").json["data"]
    assert said(acme, ended) == (True, None)
    shop = buyer(make_service(LINK_CANCEL_DAYS="0").start())
    link = shop.link(FREE)
    assert said(shop, link) == (False, None)
    assert code_of(shop.post(f"{LINKS}/{link['id']}/cancel")) == "CANCEL_WINDOW_OVER"


def test_a_search_finds_what_was_pasted(acme: Buyer) -> None:
    link = acme.link(FREE)
    number = acme.read(link).json["data"]["msisdn"]
    pasted = [f"+{number[1:]}", f" {link['iccid']} ", f"%20{number}%09", f"{link['iccid']}F"]
    for each in [*pasted, f"{link['iccid']}f", f"%2B{number[1:]}"]:
        found = acme.get(f"{LINKS}?search={each}").json["data"]["data"]
        assert [one["id"] for one in found] == [link["id"]], each
    every = acme.get(f"{LINKS}?search=%20&status=%20active").json["data"]["meta"]["total"]
    assert every == acme.get(f"{LINKS}?status=active").json["data"]["meta"]["total"]


def test_a_flag_is_read_as_languages_write_it(acme: Buyer) -> None:
    link = acme.link(FREE)
    for flag in ("True", "TRUE", "true", "1"):
        assert acme.read(link, "/network-status", live=flag).json["data"]["cached"] is False
    query = {"dry_run": "True"}
    quoted = acme.post(LINKS, json={"plan_id": acme.plans[FREE]}, query_string=query)
    assert quoted.json["data"]["price"] == "0.00"
    reply = acme.post(LINKS, json={"plan_id": acme.plans[FREE]}, query_string={"dry_run": "yes"})
    assert fields_of(reply) == {"dry_run": ["Must be true or false."]}
