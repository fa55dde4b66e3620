"""The plans that an organization can buy, and where they work."""

import pytest

from tests.app.http.service import Tenant, fields_of

PLANS = "/v1/plans"
# The upper case of ß is SS, South Sudan.
UNKNOWN = """
    region=XX region=eu region=EU&region=AS country=UK country=ß country=dé country=Germany
    coverage_type=world coverage_type=Local sponsor_profile=a%00 page=0 per_page=101 per_page=x
    search=a%00 max_price=4,50 max_price=-1 max_price=1e3 max_price=01 max_price=٣ max_price=NaN
    max_price=0.0000001 max_price=1000000000000 sort=Name sort=created_at sort=--name sort=name,id
"""


@pytest.mark.any_database
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
