"""The transactions that concern one link."""

from typing import Any
from uuid import uuid4

import pytest

from app.adapters.networks.simulated.network import Fault
from domain.accounts.wallet import Charge, Reference, wallet_id
from tests.app.http.buying import BASIC, FREE, LINKS, MISSING, MORE, Buyer, buyer
from tests.app.http.service import Service, fields_of

pytestmark = pytest.mark.any_database


@pytest.fixture(scope="module")
def acme(service: Service) -> Buyer:
    return buyer(service)


@pytest.fixture(scope="module")
def link(acme: Buyer) -> dict[str, Any]:
    """A link that was bought, topped up twice, once in vain, and counted in a monthly fee."""
    bought = acme.link()
    assert acme.change(bought, add=[MORE]).status_code == 200
    assert acme.change(bought, add=[Fault.NO_ENDPOINT.value]).status_code == 502
    charge_fee(acme, [bought["id"], MISSING])
    acme.link(MORE)
    acme.look_up("+971508245915")
    return bought


def charge_fee(shop: Buyer, link_ids: list[str]) -> None:
    """Enter a monthly fee as the clock would."""
    parts = shop.service.container
    charge = Charge(
        transaction_id=uuid4(),
        kind="monthly_link_fee",
        amount_micros=500_000,
        currency="USD",
        reference=Reference("monthly_fee", str(uuid4())),
        description="Monthly link fee 2026-10",
        metadata={"month": "2026-10", "charged_link_ids": link_ids},
    )
    cause = shop.service.cause()
    parts.committer.commit(wallet_id(shop.id), lambda held: held.charge(charge, cause))


def history(shop: Buyer, link: dict[str, Any], **query: object) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = shop.read(link, "/history", **query).json["data"]["data"]
    return entries


def test_it_holds_what_concerns_the_link_newest_first(acme: Buyer, link: dict[str, Any]) -> None:
    entries = history(acme, link)
    assert [(each["kind"], each["amount"], each["plan_name"]) for each in entries] == [
        ("monthly_link_fee", "0.50", None),
        ("refund", "1.00", Fault.NO_ENDPOINT.value),
        ("topup", "1.00", Fault.NO_ENDPOINT.value),
        ("topup", "2.00", MORE),
        ("activation", "4.50", BASIC),
    ]
    assert [each["direction"] for each in entries] == ["debit", "credit", "debit", "debit", "debit"]
    assert all(each["metadata"]["link_id"] == link["id"] for each in entries[1:])
    moments = [each["charged_at"] for each in entries]
    assert moments == sorted(moments, reverse=True)


def test_what_has_just_been_paid_is_there(acme: Buyer) -> None:
    link = acme.link(FREE)
    for count in range(2, 12, 2):  # The second of two is projected a little later than the first.
        charge_fee(acme, [link["id"]])
        charge_fee(acme, [link["id"]])
        assert len(history(acme, link)) == count


def test_its_entries_are_those_of_the_stream(acme: Buyer, link: dict[str, Any]) -> None:
    for entry in history(acme, link):
        assert acme.get(f"/v1/transactions/{entry['id']}").json["data"] == entry


def test_pages_neither_repeat_nor_skip(acme: Buyer, link: dict[str, Any]) -> None:
    whole = history(acme, link)
    pages = [acme.read(link, "/history", per_page=2, page=n).json["data"] for n in (1, 2, 3, 4)]
    assert [each for page in pages for each in page["data"]] == whole
    assert pages[3] == {
        "data": [],
        "meta": {"total": 5, "per_page": 2, "current_page": 4, "last_page": 3},
    }


def test_a_page_has_fifteen_entries_unless_said_otherwise(
    acme: Buyer, link: dict[str, Any]
) -> None:
    assert acme.read(link, "/history").json["data"]["meta"]["per_page"] == 15
    assert list(fields_of(acme.read(link, "/history", per_page=101))) == ["per_page"]


def test_a_link_that_cost_nothing_has_none(acme: Buyer) -> None:
    assert acme.read(acme.link(FREE), "/history").json["data"] == {
        "data": [],
        "meta": {"total": 0, "per_page": 15, "current_page": 1, "last_page": 1},
    }


def test_it_is_found_by_the_iccid_and_its_path_comes_before_its_query(
    acme: Buyer, link: dict[str, Any]
) -> None:
    assert acme.get(f"{LINKS}/{link['iccid']}/history").json["data"]["meta"]["total"] == 5
    assert acme.get(f"{LINKS}/{MISSING}/history?page=0").status_code == 404
