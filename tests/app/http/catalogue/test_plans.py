"""The plans that an organization can buy, and where they work."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, fields_of
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


@pytest.mark.any_database
def test_filters_can_be_combined(buyer: Tenant) -> None:
    assert [(query, names(buyer, **query)) for query, _ in FILTERED] == FILTERED


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


@pytest.mark.any_database
def test_a_filter_that_names_nothing_is_refused(buyer: Tenant) -> None:
    for query in UNKNOWN:
        (field,) = fields_of(buyer.get(f"{PLANS}?{query}"))
        assert query.startswith(f"{field}=")


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


@pytest.mark.any_database
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
