"""Changing the plans of a link: what is checked first, what it costs, what is left of a failure."""

from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest

from app.adapters.networks.simulated.network import Fault
from domain.catalogue.plan import SIMULATED
from domain.provider_errors import Unavailable
from tests.app.http.buying import (
    BASIC,
    DISABLED,
    FREE,
    LINKS,
    MORE,
    OTHER_PROFILE,
    UNSOLD,
    Buyer,
)
from tests.app.http.service import Service, fields_of
from tests.plan_files import import_plans, plan

# By price; those that work in the country of the free plan come first.
SOLD = [FREE, *sorted(fault.value for fault in Fault), MORE, BASIC]


@pytest.fixture(scope="module")
def link(acme: Buyer) -> dict[str, Any]:
    """A link whose plans no test changes."""
    return acme.link(FREE)


def offers(shop: Buyer, link: dict[str, Any], **query: str) -> list[str]:
    """Return what is offered of the plans of one's own: other tests sell plans to everybody."""
    reply = shop.read(link, "/topup-plans", **query)
    assert reply.status_code == 200, reply.text
    own = {*shop.plans.values()}
    return [each["name"] for each in reply.json["data"] if each["id"] in own]


def test_whatever_is_offered_can_be_added_at_once(service: Service, shop: Buyer) -> None:
    link = shop.link(FREE)
    new = plan("new", organization_id=str(shop.id), retail_price="0.00")
    import_plans(service.container, new)
    offered = {each["name"]: each["id"] for each in shop.read(link, "/topup-plans").json["data"]}
    body = {"add": [offered["new"]]}
    assert shop.open("PUT", f"{LINKS}/{link['id']}/plans", json=body).status_code == 200


def test_a_link_without_a_profile_is_offered_what_its_network_takes_else_every_plan(
    shop: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_id, own = str(uuid4()), {"organization_id": str(shop.id), "retail_price": "0.00"}
    import_plans(shop.service.container, plan("any", id=plan_id, sponsor_profiles=[], **own))
    shop.service.until(lambda: shop.get(f"/v1/plans/{plan_id}").status_code == 200)
    reply = shop.post(LINKS, json={"plan_id": plan_id})
    assert reply.json["data"]["sponsor_profile"] is None
    offered = shop.read(reply.json["data"], "/topup-plans").json["data"]
    assert {OTHER_PROFILE, UNSOLD, "any"} < {each["name"] for each in offered}
    assert DISABLED not in {each["name"] for each in offered}
    network = shop.service.container.bare_network
    monkeypatch.setattr(network, "topups", lambda _, plans, **__: plans[:1])
    assert len(shop.read(reply.json["data"], "/topup-plans").json["data"]) == 1
    assert len(offers(shop, shop.link(FREE))) > 1, "its profile says what it takes"
    monkeypatch.setattr(network, "topups", Mock(side_effect=Unavailable))
    monkeypatch.setattr(network, "remote", True)
    assert shop.read(reply.json["data"], "/topup-plans").status_code == 503


def test_what_works_where_the_link_works_is_offered_first_then_the_cheapest(shop: Buyer) -> None:
    link = shop.link(MORE)  # Works in FR only.
    offered = offers(shop, link)
    assert offered[:2] == [MORE, BASIC]
    assert offered[2] == FREE
    assert offered[3:] == sorted(fault.value for fault in Fault)
    shop.change(link, add=[Fault.LOST_REPLY.value])  # Of US, so these are near now as well.
    assert offers(shop, link) == [*sorted(fault.value for fault in Fault), MORE, BASIC, FREE]


def test_what_is_offered_can_be_cut_to_a_country_and_is_nothing_while_the_network_is_drained(
    acme: Buyer, link: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offers(acme, link, country="fr") == offers(acme, link, country="FR") == [MORE, BASIC]
    assert offers(acme, link, country="MC") == [BASIC]
    assert offers(acme, link, country="JP") == []
    assert offers(acme, link, country="") == SOLD
    assert list(fields_of(acme.read(link, "/topup-plans", country="UK"))) == ["country"]
    monkeypatch.setattr(acme.service.container.gate, "is_drained", SIMULATED.__eq__)
    assert offers(acme, link) == []


def test_what_is_offered_can_be_searched_and_sorted(acme: Buyer, link: dict[str, Any]) -> None:
    assert offers(acme, link, search="MORE") == [MORE]
    assert offers(acme, link, search="france", sort="-name") == [MORE, BASIC]
    assert offers(acme, link, max_price="0.00") == [FREE]
    dearest = offers(acme, link, sort="-price")  # What costs the same stays in its order.
    assert dearest == [BASIC, MORE, *offers(acme, link, sort="price")[1:-2], FREE]
    assert offers(acme, link, sort="name") == sorted(SOLD)
    wrong = acme.read(link, "/topup-plans", sort="nearest", max_price="-1", search="x" * 256)
    assert set(fields_of(wrong)) == {"sort", "max_price", "search"}
