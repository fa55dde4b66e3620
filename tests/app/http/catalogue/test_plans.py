"""The plans that an organization can buy, and where they work."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from domain.regions import REGIONS, country_name
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.installation import SetClock
from tests.plan_files import covering, import_plans, plan, profile, stored

PLANS = "/v1/plans"
MISSING = "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"


@pytest.fixture(scope="module")
def buyer(service: Service) -> Tenant:
    """An organization that sees five plans of its own, whatever else there is."""
    tenant = service.tenant()
    own = {"organization_id": str(tenant.id)}
    import_plans(
        service.container,
        plan("Own Europe", coverage=covering("DE", "TR", operators=2), **own),
        plan("Own France", coverage=covering("FR"), retail_price="0.005", data_mb=1500, **own),
        plan("Own Japan", coverage=covering("JP"), sponsor_profiles=[profile("sp-jp")], **own),
        plan("Own nothing", provider_plan_id=None, coverage=covering("AQ", operators=0), **own),
        plan("Own Nordics", coverage=covering("SE", "NO", "DK"), **own),
    )
    return tenant


def found(tenant: Tenant, **query: object) -> list[dict[str, Any]]:
    """Return the tenant's own plans on the first page."""
    reply = tenant.get(PLANS, query_string={"per_page": 100, **query})
    assert reply.status_code == 200, reply.text
    return [each for each in reply.json["data"]["data"] if each["name"].startswith("Own ")]


def names(tenant: Tenant, **query: object) -> list[str]:
    return [each["name"].removeprefix("Own ") for each in found(tenant, **query)]


def id_of(tenant: Tenant, name: str) -> str:
    return next(str(each["id"]) for each in found(tenant) if each["name"] == f"Own {name}")


def test_a_plan_has_the_fields_of_the_contract(buyer: Tenant) -> None:
    europe = found(buyer)[0]
    assert UUID(europe.pop("id"))
    assert europe == {
        "provider_plan_id": "own-europe",
        "name": "Own Europe",
        "partner_cost": "4.50",
        "currency": "USD",
        "data_gb": 1.0,
        "data_mb": 1000,
        "validity_days": 7,
        "coverage_type": "global",
        "coverage": {"countries": ["DE", "TR"], "total_countries": 2, "total_operators": 4},
        "regions": ["EU", "AS"],
        "sponsor_profiles": [{"id": "sp-1", "name": "Profile sp-1", "color": "#1F6FEB"}],
        "excluded_organizations": [],
    }


def test_odd_values_are_written_as_the_contract_has_them(buyer: Tenant) -> None:
    france, nothing = (
        next(each for each in found(buyer) if each["name"] == f"Own {name}")
        for name in ("France", "nothing")
    )
    assert (france["partner_cost"], france["data_gb"], france["data_mb"]) == ("0.005", 1.5, 1500)
    assert nothing["provider_plan_id"] is None
    assert nothing["coverage"]["total_operators"] == 0


def test_plans_come_by_name_and_one_by_one_alike(buyer: Tenant) -> None:
    listed = found(buyer)
    expected = ["Own Europe", "Own France", "Own Japan", "Own Nordics", "Own nothing"]
    assert [each["name"] for each in listed] == expected
    for each in listed:
        assert buyer.get(f"{PLANS}/{each['id']}").json["data"] == each


def test_the_coverage_names_countries_and_networks(buyer: Tenant) -> None:
    plan_id = id_of(buyer, "Europe")
    operators = [
        {"name": f"Operator {number}", "network_types": ["4G", "5G"]} for number in range(2)
    ]
    assert buyer.get(f"{PLANS}/{plan_id}/coverage").json["data"] == {
        "plan_id": plan_id,
        "countries": [
            {"country_code": code, "country_name": country_name(code), "operators": operators}
            for code in ("DE", "TR")
        ],
        "total_countries": 2,
        "total_operators": 4,
    }


def test_the_regions_are_all_there_and_no_plan(buyer: Tenant) -> None:
    regions = buyer.get(f"{PLANS}/regions").json["data"]
    assert [each["code"] for each in regions] == ["EU", "AF", "AS", "LA", "NA", "OC"]
    assert regions[4] == {
        "code": "NA",
        "label": "North America",
        "countries": ["BM", "CA", "GL", "PM", "US"],
    }
    assert sum(len(each["countries"]) for each in regions) == 250


FILTERED: list[tuple[dict[str, str], list[str]]] = [
    ({"region": "EU"}, ["Europe", "France", "Nordics"]),
    ({"region": "AS"}, ["Europe", "Japan"]),
    ({"region": "LA"}, []),
    ({"country": "TR"}, ["Europe"]),
    ({"country": "tr"}, ["Europe"]),
    ({"country": "Tr"}, ["Europe"]),
    ({"country": "VU"}, []),
    ({"coverage_type": "local"}, ["France", "Japan", "nothing"]),
    ({"coverage_type": "regional"}, ["Nordics"]),
    ({"coverage_type": "global", "region": "AS"}, ["Europe"]),
    ({"sponsor_profile": "sp-jp"}, ["Japan"]),
    ({"sponsor_profile": "Profile sp-jp"}, ["Japan"]),
    ({"sponsor_profile": "sp-jp", "region": "EU"}, []),
    ({"sponsor_profile": "nobody"}, []),
    ({"sponsor_profile": "n" * 1_000}, []),
    ({"region": "EU", "country": "DE", "coverage_type": "global"}, ["Europe"]),
]


def test_filters_can_be_combined(buyer: Tenant) -> None:
    assert [(query, names(buyer, **query)) for query, _ in FILTERED] == FILTERED


def test_an_empty_filter_is_none(buyer: Tenant) -> None:
    reply = buyer.get(f"{PLANS}?region=&country=&coverage_type=&sponsor_profile=&unknown=1")
    assert reply.json["data"] == buyer.get(PLANS).json["data"]


UNKNOWN = [
    "region=XX",
    "region=eu",
    "region=EU&region=AS",
    "country=UK",
    "country=ß",  # Its upper case is SS, South Sudan.
    "country=dé",
    "country=Germany",
    "country=DE&country=FR",
    "coverage_type=world",
    "coverage_type=Local",
    "sponsor_profile=a%00",
    "sponsor_profile=a&sponsor_profile=b",
    "page=0",
    "per_page=101",
    "per_page=x",
]


def test_a_filter_that_names_nothing_is_refused(buyer: Tenant) -> None:
    for query in UNKNOWN:
        (field,) = fields_of(buyer.get(f"{PLANS}?{query}"))
        assert query.startswith(f"{field}=")


def test_every_wrong_filter_is_named(buyer: Tenant) -> None:
    fields = fields_of(buyer.get(f"{PLANS}?region=1&country=2&coverage_type=3&page=0"))
    assert set(fields) == {"region", "country", "coverage_type", "page"}


def test_pages_neither_repeat_nor_skip(buyer: Tenant) -> None:
    whole = buyer.get(PLANS, query_string={"per_page": 100}).json["data"]
    assert whole["meta"]["per_page"] == 100
    pages = []
    for page in range(1, whole["meta"]["total"] + 2):
        reply = buyer.get(PLANS, query_string={"page": page, "per_page": 1}).json["data"]
        pages += reply["data"]
        assert reply["meta"]["last_page"] == reply["meta"]["total"] == whole["meta"]["total"]
    assert pages == whole["data"]
    assert buyer.get(PLANS).json["data"]["meta"]["per_page"] == 50


@pytest.mark.parametrize("path", ["", "/coverage"])
def test_a_plan_that_does_not_exist_is_a_404(buyer: Tenant, path: str) -> None:
    for plan_id in (MISSING, "none", "0" * 32, "%00", "regions2", "REGIONS"):
        reply = buyer.get(f"{PLANS}/{plan_id}{path}")
        assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND"), plan_id


def test_a_plan_that_is_hidden_or_disabled_is_a_404_like_a_missing_one(
    service: Service, rival: Tenant
) -> None:
    tenant, catalogue = service.tenant(), service.container.catalogue
    hidden, copied, disabled, foreign = (str(uuid4()) for _ in range(4))
    own = str(tenant.id)
    import_plans(
        service.container,
        plan("hidden", id=hidden, excluded_organizations=[own]),
        plan("copied", id=copied),
        plan("copied", organization_id=own, enabled=False),
        plan("disabled", id=disabled, enabled=False),
        plan("foreign", id=foreign, organization_id=str(rival.id)),
    )
    missing = tenant.get(f"{PLANS}/{MISSING}")
    listed = {each["id"] for each in tenant.get(PLANS).json["data"]["data"]}
    for plan_id in (hidden, copied, disabled, foreign):
        for path in ("", "/coverage"):
            reply = tenant.get(f"{PLANS}/{plan_id}{path}")
            assert reply.status_code == 404
            assert reply.json["error"] == missing.json["error"]
        assert plan_id not in listed
    for plan_id in (hidden, copied, foreign):
        shown = rival.get(f"{PLANS}/{plan_id}")
        assert shown.status_code == 200
        assert own not in shown.text, "whom a plan is hidden from is told to nobody"
    catalogue.include(UUID(hidden), tenant.id, service.cause())
    catalogue.switch(UUID(disabled), service.cause(), enabled=True)
    for plan_id in (hidden, disabled):
        assert tenant.get(f"{PLANS}/{plan_id}").status_code == 200


def test_what_has_not_changed_is_not_sent_again(service: Service, buyer: Tenant) -> None:
    own = {"organization_id": str(buyer.id), "sponsor_profiles": [profile("sp-tagged")]}
    import_plans(service.container, plan("Tagged", **own))
    page = f"{PLANS}?sponsor_profile=sp-tagged"
    [tagged] = buyer.get(page).json["data"]["data"]
    regions, one = f"{PLANS}/regions", f"{PLANS}/{tagged['id']}"
    paths = [one, f"{one}/coverage", regions, page]
    tags = {}
    for path in paths:
        reply = buyer.get(path)
        tags[path] = tag = reply.headers["ETag"]
        assert tag.startswith('W/"')
        assert reply.headers["Cache-Control"] == "private, no-cache"
        assert reply.headers["Vary"] == "Authorization, X-Organization-Id, Accept-Encoding"
        again = buyer.get(path, headers={"If-None-Match": tag})
        assert (again.status_code, again.data) == (304, b"")
        assert again.headers["ETag"] == tag
        assert buyer.get(path, headers={"If-None-Match": 'W/"x"'}).status_code == 200
    assert len(set(tags.values())) == len(paths)
    import_plans(service.container, plan("Tagged", **own, coverage=covering("FR")))
    for path in paths:
        status = buyer.get(path, headers={"If-None-Match": tags[path]}).status_code
        assert status == (304 if path == regions else 200), path


@pytest.mark.parametrize("path", ["", "/regions", f"/{MISSING}", f"/{MISSING}/coverage"])
def test_plans_need_their_scope(service: Service, path: str) -> None:
    tenant = service.tenant(scopes=["lookup", "links", "wallet"])
    reply = tenant.get(f"{PLANS}{path}?region=XX")
    assert (reply.status_code, code_of(reply)) == (403, "INSUFFICIENT_SCOPE")
    assert service.client.get(f"{PLANS}{path}").status_code == 401
    allowed = service.tenant(scopes=["plans"]).get(f"{PLANS}{path}")
    assert allowed.status_code == (404 if MISSING in path else 200)


@pytest.mark.parametrize("path", ["", "/regions", f"/{MISSING}", f"/{MISSING}/coverage"])
def test_plans_are_only_read(buyer: Tenant, path: str) -> None:
    reply = buyer.open("POST", f"{PLANS}{path}")
    assert (reply.status_code, code_of(reply)) == (405, "METHOD_NOT_ALLOWED")
    assert set(reply.headers["Allow"].split(", ")) == {"GET", "HEAD"}


def test_an_operators_change_is_read_at_once(service: Service, buyer: Tenant) -> None:
    plan_id = id_of(buyer, "Japan")
    for enabled in (False, True) * 5:
        service.container.catalogue.switch(UUID(plan_id), service.cause(), enabled=enabled)
        assert ("Japan" in names(buyer)) == enabled
        service.container.catalogue.switch(UUID(plan_id), service.cause(), enabled=not enabled)
        assert buyer.get(f"{PLANS}/{plan_id}").status_code == (404 if enabled else 200)
    service.container.catalogue.switch(UUID(plan_id), service.cause(), enabled=True)


def test_an_empty_catalogue_is_an_empty_page(make_service: MakeService) -> None:
    reply = make_service().tenant().get(PLANS)
    assert reply.json["data"] == {
        "data": [],
        "meta": {"total": 0, "per_page": 50, "current_page": 1, "last_page": 1},
    }


def test_every_region_can_be_asked_for(buyer: Tenant) -> None:
    for region in REGIONS:
        assert buyer.get(f"{PLANS}?region={region}").status_code == 200


def test_a_price_that_takes_effect_is_the_price_from_then_on(make_service: MakeService) -> None:
    clock = SetClock()
    service = make_service(clock=clock)
    tenant, parts = service.tenant(), service.container
    import_plans(parts, plan("Own France", coverage=covering("FR")))
    plan_id, starts_at = stored(parts, "Own France").id, clock.now + timedelta(minutes=5)
    parts.catalogue.price(
        plan_id, 5_000_000, service.cause(), starts_at=starts_at, below_cost=False
    )
    parts.projector.catch_up()
    etags = set()
    for price in ("4.50", "5.00"):
        assert [each["partner_cost"] for each in found(tenant)] == [price]
        reply = tenant.get(f"{PLANS}/{plan_id}")
        assert reply.json["data"]["partner_cost"] == price
        etags.add(reply.headers["ETag"])
        clock.now = starts_at
    assert len(etags) == 2
