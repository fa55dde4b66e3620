"""Reading links: one by its id or its ICCID, all of them as a list."""

from typing import Any

import pytest

from app.adapters.networks.simulated.network import Fault
from tests.app.http.buying import FREE, LINKS, MISSING, MORE, Buyer, buyer
from tests.app.http.service import Service, code_of

NAMES = ["Straße", "100% Öl", "a_b", "back\\slash", None, "van", "VAN 2"]


@pytest.fixture(scope="module")
def acme(service: Service) -> Buyer:
    return buyer(service)


@pytest.fixture(scope="module")
def fleet(service: Service) -> Buyer:
    """An organization with a link of each name, all on the free plan but the last."""
    shop = buyer(service)
    for name in NAMES:
        shop.read(shop.link(FREE if name != NAMES[-1] else MORE, name=name))
    service.until_projected("links")
    return shop


def found(shop: Buyer, **query: object) -> list[dict[str, Any]]:
    reply = shop.get(LINKS, query_string=query)
    assert reply.status_code == 200, reply.text
    items: list[dict[str, Any]] = reply.json["data"]["data"]
    return items


def names(shop: Buyer, **query: object) -> list[str | None]:
    return [each["name"] for each in found(shop, **query)]


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


FOUND: list[tuple[str, list[str | None]]] = [
    ("VAN", ["VAN 2", "van"]),
    ("STRASSE", ["Straße"]),
    ("öl", ["100% Öl"]),
    ("%", ["100% Öl"]),
    ("_", ["a_b"]),
    ("\\", ["back\\slash"]),
    ("'", []),
    (MORE, ["VAN 2"]),
    ("MORE", ["VAN 2"]),
    ("nowhere", []),
    ("", NAMES[::-1]),
]


def test_links_are_found_by_a_part_of_a_name(fleet: Buyer) -> None:
    assert [(search, names(fleet, search=search)) for search, _ in FOUND] == FOUND


@pytest.mark.parametrize("field", ["id", "iccid", "msisdn"])
def test_links_are_found_by_a_part_of_what_they_are_known_by(fleet: Buyer, field: str) -> None:
    for link in found(fleet):
        part = link[field][5:]
        assert [each[field] for each in found(fleet, search=part)] == [link[field]]
        assert [each[field] for each in found(fleet, search=part.upper())] == [link[field]]
        assert found(fleet, search=part, status="suspended") == []


@pytest.mark.any_database
def test_a_link_that_is_not_active_does_not_exist(acme: Buyer) -> None:
    assert acme.create(Fault.NO_ENDPOINT.value).status_code == 502
    link_id = acme.transactions(kind="refund")[0]["reference"]["id"]
    assert acme.get(f"{LINKS}/{link_id}").status_code == 404
