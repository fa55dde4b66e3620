"""Reading links: one by its id or its ICCID, all of them as a list."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from app.adapters.networks.simulated.identifiers import msisdn_of
from app.adapters.networks.simulated.network import Fault
from domain.cause import utc_now
from domain.links.link import Link
from domain.links.network import AddonUsage, Usage
from tests.app.http.buying import FREE, LINKS, MISSING, MORE, Buyer, buyer
from tests.app.http.service import Service, code_of, fields_of
from tests.support.erasing import erase_months

ITEM = {
    "id",
    "name",
    "iccid",
    "msisdn",
    "status",
    "created_at",
    "sponsor_profile",
    "lpa_profile",
    "confirmation_code",
    "apple_activation_url",
    "android_activation_url",
    "data_used_mb",
    "data_remaining_mb",
    "data_total_mb",
    "expires_at",
    "installed_at",
    "first_used_at",
    "usage_as_of",
    "network",
    "capabilities",
}
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
    return shop


def found(shop: Buyer, **query: object) -> list[dict[str, Any]]:
    reply = shop.get(LINKS, query_string=query)
    assert reply.status_code == 200, reply.text
    items: list[dict[str, Any]] = reply.json["data"]["data"]
    return items


def names(shop: Buyer, **query: object) -> list[str | None]:
    return [each["name"] for each in found(shop, **query)]


def aggregate_of(shop: Buyer, link: dict[str, Any]) -> Link:
    return shop.service.container.log.get(Link, UUID(link["id"]))


def test_a_link_is_read_by_its_id_and_by_its_iccid(acme: Buyer) -> None:
    link = acme.link(name="Van")
    by_id, by_iccid = acme.read(link), acme.get(f"{LINKS}/{link['iccid']}")
    upper = acme.get(f"{LINKS}/{link['id'].upper()}")
    assert by_id.status_code == by_iccid.status_code == upper.status_code == 200
    for reply in (by_id, by_iccid):
        data = reply.json["data"]
        assert data.keys() == ITEM | {"activations", "coverage_data"}
        shown = {**data, "usage_as_of": None, "msisdn": None}
        bought = {**link, "usage_as_of": None, "msisdn": None}
        assert shown.items() <= bought.items()
        assert data["msisdn"] == msisdn_of(link["iccid"])
        assert data["usage_as_of"] >= link["usage_as_of"]


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


def test_a_link_that_is_not_active_yet_does_not_exist(service: Service) -> None:
    shop = buyer(service)
    assert shop.create(Fault.NO_ENDPOINT.value).status_code == 502
    link_id = shop.transactions(kind="refund")[0]["reference"]["id"]
    assert shop.get(f"{LINKS}/{link_id}").status_code == 404
    assert found(shop) == []


def test_the_network_is_asked_and_what_it_shows_is_kept(service: Service) -> None:
    shop = buyer(service)
    link = shop.link()
    endpoint_id = aggregate_of(shop, link).endpoint_id
    assert endpoint_id is not None
    service.container.bare_network.deactivate(endpoint_id)
    assert names(shop, status="active") == [None]
    assert shop.read(link).json["data"]["status"] == "inactive"
    assert [each["status"] for each in found(shop)] == ["inactive"]
    assert names(shop, status="active") == []


def test_a_network_out_of_reach_leaves_what_it_said_last(service: Service) -> None:
    shop = buyer(service)
    link = shop.link(Fault.UNREACHABLE.value)
    then = utc_now() + timedelta(minutes=1)
    aggregate = aggregate_of(shop, link)
    assert aggregate.addon_id is not None
    addon = AddonUsage(aggregate.addon_id, Fault.UNREACHABLE.value, 250.5004, 749.4996, None)
    usage = Usage("active", [addon], then, msisdn="+8839991")
    service.container.readings.keep_usage(shop.id, aggregate.id, usage)
    reply = shop.read(link)
    assert reply.status_code == 200
    assert reply.json["meta"]["stale"] is True
    seen = reply.json["data"]
    assert (seen["data_used_mb"], seen["data_remaining_mb"]) == (250.5, 749.5)
    assert seen["msisdn"] == "+8839991"
    assert seen["usage_as_of"] == then.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    (item,) = found(shop)
    assert item.items() <= seen.items()


def test_a_plan_that_has_expired_has_nothing_left_and_covers_nothing(service: Service) -> None:
    shop = buyer(service)
    link = shop.link(Fault.UNREACHABLE.value)
    aggregate = aggregate_of(shop, link)
    assert aggregate.addon_id is not None
    addon = AddonUsage(aggregate.addon_id, Fault.UNREACHABLE.value, 100.0, 900.0, utc_now())
    used = utc_now() - timedelta(days=7)
    usage = Usage("active", [addon], utc_now(), used, used)
    service.container.readings.keep_usage(shop.id, aggregate.id, usage)
    seen = shop.read(link).json["data"]
    (activation,) = seen["activations"]
    assert activation["status"] == "expired"
    assert activation["expiry_date"].endswith("Z")
    assert (activation["data_used_mb"], activation["data_remaining_mb"]) == (100.0, 0.0)
    assert (seen["data_remaining_mb"], seen["coverage_data"]) == (0.0, [])


def test_items_are_links_without_their_plans(fleet: Buyer) -> None:
    for item in found(fleet):
        assert item.keys() == ITEM
        detail = fleet.read(item).json["data"]
        same = ITEM - {"usage_as_of"}
        assert {name: item[name] for name in same} == {name: detail[name] for name in same}


def test_links_come_newest_first(fleet: Buyer) -> None:
    assert names(fleet) == NAMES[::-1]


def test_pages_neither_repeat_nor_skip(fleet: Buyer) -> None:
    pages = [
        fleet.get(LINKS, query_string={"per_page": 3, "page": n}).json["data"] for n in (1, 2, 3, 4)
    ]
    assert [len(page["data"]) for page in pages] == [3, 3, 1, 0]
    assert [each["name"] for page in pages for each in page["data"]] == NAMES[::-1]
    assert [page["meta"] for page in pages] == [
        {"total": 7, "per_page": 3, "current_page": n, "last_page": 3} for n in (1, 2, 3, 4)
    ]


def test_a_page_has_twenty_links_unless_said_otherwise(acme: Buyer) -> None:
    assert acme.get(LINKS).json["data"]["meta"]["per_page"] == 20


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


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"status": "expired"}, "status"),
    ({"status": "Active"}, "status"),
    ({"status": ["active", "suspended"]}, "status"),
    ({"search": "s" * 256}, "search"),
    ({"search": "a\0b"}, "search"),
    ({"per_page": "101"}, "per_page"),
    ({"per_page": "0"}, "per_page"),
    ({"page": "0"}, "page"),
    ({"page": "x"}, "page"),
]


def test_a_wrong_query_is_refused(acme: Buyer) -> None:
    for query, field in WRONG:
        assert list(fields_of(acme.get(LINKS, query_string=query))) == [field], query


def test_empty_filters_are_none_and_unknown_ones_are_ignored(fleet: Buyer) -> None:
    assert len(names(fleet, status="", search="", colour="red")) == 7


def test_links_need_their_scope(service: Service) -> None:
    narrow = service.tenant(scopes=["plans", "wallet", "lookup"])
    for method, path in (
        ("GET", ""),
        ("POST", ""),
        ("GET", f"/{MISSING}"),
        ("PUT", f"/{MISSING}/plans"),
        ("GET", f"/{MISSING}/topup-plans"),
        ("POST", f"/{MISSING}/suspend"),
        ("POST", f"/{MISSING}/reactivate"),
        ("GET", f"/{MISSING}/history"),
        ("GET", f"/{MISSING}/network-status"),
    ):
        assert code_of(narrow.open(method, LINKS + path)) == "INSUFFICIENT_SCOPE", path


def test_an_erased_activation_code_stays_erased(service: Service) -> None:
    shop = buyer(service)
    link = shop.link()
    erase_months(service.container.vault, "9999-12", shop.id)
    again = shop.read(link).json["data"]
    nothing = {"lpa_profile": None, "apple_activation_url": None, "android_activation_url": None}
    assert nothing.items() <= again.items()
    assert nothing.items() <= found(shop)[0].items()
