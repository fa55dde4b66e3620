"""Links that were issued elsewhere: taken over once, then used as if they had been sold here."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.cli.import_files import read_link_file
from domain.catalogue.file_errors import FileRefused
from domain.links.esim import Esim
from domain.links.importing import ImportedLinks
from domain.links.link import Link
from domain.links.network import NO_CODE, ProviderPlan
from tests import plan_files
from tests.app.http.buying import BASIC, FREE, LINKS, MISSING, MORE, PROFILE, Buyer

IN_TIME = {"timeout_s": 5.0}
SOLD, ADDED = "2025-11-01T10:00:00Z", "2025-12-01T10:00:00Z"


def elsewhere(shop: Buyer) -> dict[str, Any]:
    """Sell a link with two plans as another system did; return how its file tells of it."""
    network: Any = shop.service.container.network
    plan = ProviderPlan(BASIC, 5_000, 30)
    (iccid, *_) = network.available_esims(plan, "sp-1", "", page=0, **IN_TIME)
    made = network.create_endpoint(iccid, plan, "base-1", f"old-{uuid4()}", **IN_TIME)
    another = ProviderPlan(MORE, 500, 30)
    more = network.add_plan(made.endpoint_id, another, str(uuid4()), **IN_TIME)
    return {
        "organization_id": str(shop.id),
        "iccid": iccid,
        "endpoint_id": made.endpoint_id,
        "name": "Van 7",
        "sponsor_profile": PROFILE,
        "lpa": network.lpa(iccid, **IN_TIME).lpa,
        "confirmation_code": "4711-A",
        "plans": [
            {"plan_id": shop.plans[MORE], "bought_at": ADDED, "addon_id": more.addon_id},
            {"plan_id": shop.plans[BASIC], "bought_at": SOLD},
        ],
    }


def take_over(shop: Buyer, *entries: Mapping[str, Any], dry_run: bool = False) -> ImportedLinks:
    service = shop.service
    return plan_files.take_over(service.container, service.cause(), *entries, dry_run=dry_run)


def refused(shop: Buyer, *entries: Mapping[str, Any]) -> list[str]:
    with pytest.raises(FileRefused) as error:
        take_over(shop, *entries)
    return error.value.lines


def links_of(shop: Buyer) -> list[dict[str, Any]]:
    shop.service.until_projected("links")
    listed: list[dict[str, Any]] = shop.get("/v1/links").json["data"]["data"]
    return listed


@pytest.mark.each_database
def test_a_link_that_was_taken_over_is_as_one_that_was_sold_here(shop: Buyer) -> None:
    entry = elsewhere(shop)
    assert take_over(shop, entry) == ImportedLinks(created=1, unchanged=0)
    (listed,) = links_of(shop)
    link = shop.read(listed).json["data"]
    assert (link["iccid"], link["name"], link["status"]) == (entry["iccid"], "Van 7", "active")
    assert (link["lpa_profile"], link["sponsor_profile"]) == (entry["lpa"], PROFILE)
    assert link["confirmation_code"] == listed["confirmation_code"] == "4711-A"
    assert [(each["plan_name"], each["activation_date"]) for each in link["activations"]] == [
        (BASIC, "2025-11-01T10:00:00.000Z"),
        (MORE, "2025-12-01T10:00:00.000Z"),
    ]
    assert link["data_remaining_mb"] > 5_000
    assert shop.get(f"/v1/links/{entry['iccid']}").json["data"]["id"] == listed["id"]
    assert shop.balance() == "100.00"
    assert shop.read(link, "/history").json["data"]["data"] == []


def test_the_same_file_again_changes_nothing(shop: Buyer) -> None:
    first, second = elsewhere(shop), elsewhere(shop)
    assert take_over(shop, first, second, dry_run=True) == ImportedLinks(2, 0)
    assert links_of(shop) == []
    take_over(shop, first)
    (link,) = links_of(shop)
    shop.change(link, add=[FREE])
    log, stream = shop.service.container.log, UUID(link["id"])
    before = log.history(stream)
    assert take_over(shop, first) == ImportedLinks(0, 1)
    assert len(log.history(stream)) == len(before)
    assert take_over(shop, first, second) == ImportedLinks(1, 1)
    other = f"differs from what link {link['id']} was taken over with"
    changed = {"name": "Van 8", "confirmation_code": "4711", "plans": first["plans"][:1]}
    assert refused(shop, {**first, **changed}) == [
        f"links[0]: name: {other}",
        f"links[0]: lpa: {other}",
        f"links[0]: plans: {other}",
    ]


def test_its_esim_is_sold_to_nobody_else(shop: Buyer) -> None:
    """The stock may still show it as free, as one of another system does."""
    network: Any = shop.service.container.network
    plan = ProviderPlan(BASIC, 5_000, 30)
    free = network.available_esims(plan, "sp-1", "", page=0, **IN_TIME)
    take_over(shop, *({**elsewhere(shop), "iccid": each} for each in free[:3]))
    held = {each["iccid"] for each in links_of(shop)}
    assert all(shop.link()["iccid"] not in held for _ in range(3))


def test_what_is_wrong_is_named_and_nothing_is_taken_over(shop: Buyer) -> None:
    good, bad = elsewhere(shop), elsewhere(shop)
    later = (shop.service.container.clock() + timedelta(minutes=1)).isoformat()
    unknown = {"plan_id": str(uuid4()), "bought_at": SOLD}
    table: list[tuple[dict[str, Any], str]] = [
        ({"organization_id": str(uuid4())}, "organization_id: is no organization"),
        ({"endpoint_id": None}, "endpoint_id: is missing: the network gives each link one"),
        ({"lpa": None}, "confirmation_code: must not stand without an lpa"),
        ({"plans": [unknown]}, "plans[0].plan_id: is no plan of the catalogue that a network has"),
        (
            {"plans": [{**bad["plans"][0], "bought_at": later}]},
            "plans[0].bought_at: must not be in the future",
        ),
    ]
    for wrong, told in table:
        assert refused(shop, good, {**bad, **wrong}) == [f"links[1]: {told}"]
    sold = shop.link()
    taken = {**good, "iccid": sold["iccid"]}
    assert refused(shop, taken) == [f"links[0]: iccid: is the eSIM of link {sold['id']}"]
    its = shop.service.container.log.get(Link, UUID(sold["id"])).endpoint_id
    taken = {**good, "endpoint_id": its}
    assert refused(shop, taken) == [f"links[0]: endpoint_id: is that of link {sold['id']}"]
    assert [each["id"] for each in links_of(shop)] == [sold["id"]]
    shop.open("DELETE", f"{LINKS}/{sold['id']}")  # The network may give its endpoint away now.
    assert take_over(shop, taken, dry_run=True).created == 1


@pytest.mark.each_database
def test_what_cannot_be_taken_over_is_left_out_where_that_is_allowed(shop: Buyer) -> None:
    parts, good = shop.service.container, elsewhere(shop)
    wrong = [
        {**good, "iccid": "8988211000000000002", "endpoint_id": "e-2", "organization_id": MISSING},
        {**good, "iccid": "8988211000000000003", "endpoint_id": "e-3", "lpa": "1$a.b$C"},
    ]
    data, skipped = json.dumps({"links": [*wrong, good]}).encode(), list[str]()
    entries = read_link_file(data, parts.networks.names, skipped)
    done = parts.link_import.run(entries, shop.service.cause(), dry_run=False, skip=True)
    assert (done.created, done.unchanged) == (1, 0)
    assert [*skipped, *done.skipped] == [
        f"links[1]: lpa: {NO_CODE}",
        "links[0]: organization_id: is no organization",
    ]
    assert [each["iccid"] for each in links_of(shop)] == [good["iccid"]]


@pytest.mark.each_database
def test_two_imports_at_once_take_a_link_over_once(shop: Buyer) -> None:
    entry, parts = elsewhere(shop), shop.service.container
    terms = parts.link_import.terms

    def another_is_quicker() -> Any:
        object.__setattr__(parts.link_import, "terms", terms)
        take_over(shop, entry)
        return terms()

    object.__setattr__(parts.link_import, "terms", another_is_quicker)
    assert take_over(shop, entry) == ImportedLinks(0, 1)
    assert len(links_of(shop)) == 1


def test_a_fee_counts_it_from_then_on_and_its_code_is_sealed(shop: Buyer) -> None:
    entry, parts = elsewhere(shop), shop.service.container
    take_over(shop, entry)
    (listed,) = links_of(shop)
    shop.service.until_projected("links")
    active = parts.read(parts.links.active_at, shop.id, parts.clock())
    assert [str(each) for each in active] == [listed["id"]]
    link = parts.log.get(Link, active[0])
    assert link.paid() == []
    assert parts.log.get(Esim, Esim.id_of("simulated", entry["iccid"])).link_id == link.id
    stored = [parts.log.mapper.to_stored_event(each.event).state for each in parts.log.read(0, 999)]
    for clear in (entry["lpa"], entry["confirmation_code"]):
        assert not [state for state in stored if clear.encode() in state]
