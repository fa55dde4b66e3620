"""Reading links: one by its id or its ICCID, all of them as a list."""

import pytest

from app.adapters.networks.simulated.network import Fault
from tests.app.http.buying import FREE, LINKS, MISSING, Buyer
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


@pytest.mark.each_database
def test_a_search_finds_what_was_pasted(acme: Buyer) -> None:
    link = acme.link(FREE)
    acme.service.until_projected("links")
    number = acme.read(link).json["data"]["msisdn"]
    pasted = [f"+{number[1:]}", f" {link['iccid']} ", f"%20{number}%09", f"{link['iccid']}F"]
    for each in [*pasted, f"{link['iccid']}f", f"%2B{number[1:]}"]:
        found = acme.get(f"{LINKS}?search={each}").json["data"]["data"]
        assert [one["id"] for one in found] == [link["id"]], each
    every = acme.get(f"{LINKS}?search=%20&status=%20active").json["data"]["meta"]["total"]
    assert every == acme.get(f"{LINKS}?status=active").json["data"]["meta"]["total"]


REFUSED = """
    created_from=yesterday created_to=2026-11-21T08:00:00 expires_before=2026-13-01 expires_before=1
    expires_before=2026-11-21%00 plan_id=1 plan_id=%00 plan_id=8C1F0C7E5B1F4A5E8A440F6F6F0E2D11
    sort=name sort=-price sort=Created_At sort=created_at,expires_at search=a%00 status=lost
"""


def test_a_filter_of_links_that_says_nothing_is_refused(acme: Buyer) -> None:
    for query in REFUSED.split():
        (field,) = fields_of(acme.get(f"{LINKS}?{query}&page=1"))
        assert query.startswith(f"{field}="), query
    (problem,) = fields_of(acme.get(f"{LINKS}?sort=price"))["sort"]
    assert problem == "Must be one of: created_at, -created_at, expires_at, -expires_at."
    assert [*fields_of(acme.get(f"{LINKS}?search={'x' * 10_000}&plan_id=1&sort=up"))] == [
        *("search", "plan_id", "sort")
    ]


def test_a_flag_is_read_as_languages_write_it(acme: Buyer) -> None:
    link = acme.link(FREE)
    for flag in ("True", "TRUE", "true", "1"):
        assert acme.read(link, "/network-status", live=flag).json["data"]["cached"] is False
    query = {"dry_run": "True"}
    quoted = acme.post(LINKS, json={"plan_id": acme.plans[FREE]}, query_string=query)
    assert quoted.json["data"]["price"] == "0.00"
    reply = acme.post(LINKS, json={"plan_id": acme.plans[FREE]}, query_string={"dry_run": "yes"})
    assert fields_of(reply) == {"dry_run": ["Must be true or false."]}
