"""The plans that an organization can buy, and where they work."""

from datetime import timedelta

from tests.app.http.conftest import MakeService
from tests.app.http.service import Tenant, fields_of
from tests.installation import SetClock
from tests.plan_files import import_plans, plan, stored

PLANS = "/v1/plans"
# The upper case of ß is SS, South Sudan.
UNKNOWN = """
    region=XX region=eu region=EU&region=AS country=UK country=ß country=dé country=Germany
    coverage_type=world coverage_type=Local sponsor_profile=a%00 page=0 per_page=101 per_page=x
    search=a%00 max_price=4,50 max_price=-1 max_price=1e3 max_price=01 max_price=٣ max_price=NaN
    max_price=0.0000001 max_price=1000000000000 sort=Name sort=created_at sort=--name sort=name,id
"""


def test_a_filter_that_names_nothing_is_refused(acme: Tenant) -> None:
    for query in UNKNOWN.split():
        (field,) = fields_of(acme.get(f"{PLANS}?{query}"))
        assert query.startswith(f"{field}=")
    others = {"UK": "United Kingdom is GB.", "el": "Greece is GR.", "Germany": "Germany is DE."}
    for sent, meant in others.items():
        (problem,) = fields_of(acme.get(f"{PLANS}?country={sent}"))["country"]
        assert problem.endswith(meant)
    assert fields_of(acme.get(f"{PLANS}?search={'x' * 10_000}")) == {
        "search": ["Longer than maximum length 255."]
    }
    (problem,) = fields_of(acme.get(f"{PLANS}?sort=cost"))["sort"]
    assert problem == "Must be one of: name, -name, price, -price."


def test_a_price_that_takes_effect_is_the_price_from_then_on(make_service: MakeService) -> None:
    clock, shown = SetClock(), list[str]()
    service = make_service(clock=clock)
    tenant, parts, cause = service.tenant(), service.container, service.cause()
    import_plans(parts, plan("Dearer soon"))
    plan_id, starts_at = stored(parts, "Dearer soon").id, clock.now + timedelta(minutes=5)
    parts.catalogue.change(plan_id, lambda it: it.price(5_000_000, cause, starts_at=starts_at))
    parts.projector.catch_up()
    etags = set()
    for _ in range(2):
        one, listed = (
            tenant.get(path) for path in (f"{PLANS}/{plan_id}", f"{PLANS}?search=dearer")
        )
        found = [one.json["data"], *listed.json["data"]["data"]]
        shown += [each["partner_cost"] for each in found]
        etags |= {each.headers["ETag"] for each in (one, listed)}
        clock.now = starts_at
    assert (shown, len(etags)) == (["4.50"] * 2 + ["5.00"] * 2, 4)
