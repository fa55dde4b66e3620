"""Data plans: what they offer, what they cost, where they work."""

from collections.abc import Iterable
from typing import Annotated, Any, Final
from uuid import UUID

from marshmallow import ValidationError
from msgspec import Struct

from app.http.accounts.input import AMOUNT, Money
from app.http.edge.input import NO_NUL, PageQuery, Query, Search, Text, choice, parse_id
from app.http.edge.operation import Group, link_to
from app.http.edge.replies import Page, example, filters_of, part_of, show_page, wait_for
from app.http.edge.request import Given
from app.security.authorization import Caller
from domain import regions
from domain.catalogue import plan
from domain.catalogue.supplied import NOTICES
from domain.errors import NotFound
from domain.money import format_amount
from domain.regions import REGIONS, code_meant, country_name, is_country
from projections.engine.shape import (
    MORE_MAY_COME,
    PLAN_NAME,
    Amount,
    Currency,
    Shape,
    means,
    one_of,
)
from projections.models.plans import SORTS, PlanFilter, PlanRow

MB_PER_GB = 1000
COVERAGE_TYPE: Final = (
    "`local`: one country; `regional`: several of one region; `global`: several regions."
)

CountryCode = Annotated[str, means("ISO 3166-1 alpha-2.", example="FR", pattern="^[A-Z]{2}$")]
RegionCode = Annotated[
    str,
    means("A region; each country belongs to one."),
    means(example="EU", **one_of("RegionCode", regions.REGIONS)),
]
Notices = Annotated[
    list[Annotated[str, means(**one_of("Notice", NOTICES, MORE_MAY_COME), example="manual_apn")]],
    means(
        "What its traveller must know: an identity check comes before its use (`identity_check`), "
        "its time begins at the installation (`starts_at_installation`), it has voice and text "
        "too (`voice_and_text`), the access point is set by hand (`manual_apn`).",
        example=[],
    ),
]
TotalCountries = Annotated[int, means("How many countries it covers.")]
TotalOperators = Annotated[int, means("How many networks it can use, counted in each country.")]


class SponsorProfile(Struct):
    """A profile of the network that an eSIM runs on."""

    id: Annotated[str, means("The profile.", example="sp-atlas")]
    name: Annotated[str, means("How people call it.", example="Atlas")]
    color: Annotated[str, means("How it is shown.", example="#1F6FEB")]


class PlanCoverage(Struct):
    """Where a plan works, in short."""

    countries: list[CountryCode]
    total_countries: TotalCountries
    total_operators: TotalOperators


class Plan(Shape):
    """A data plan as its reader's organization can buy it."""

    id: Annotated[UUID, means("The plan.")]
    provider_plan_id: Annotated[
        str | None,
        means("Its id at the network; null: it cannot be bought yet.", example="eu-5gb-30d"),
    ]
    name: Annotated[str, means("How people call it.", example=PLAN_NAME)]
    partner_cost: Annotated[Amount, means("What your wallet pays for it.", example="4.50")]
    currency: Currency
    data_gb: Annotated[float, means("The data in GB; 1 GB is 1000 MB.", example=5.0)]
    data_mb: Annotated[int, means("The data in MB.", example=5000)]
    validity_days: Annotated[int, means("How many days it lasts from its first use.", example=30)]
    coverage_type: Annotated[
        str, means(COVERAGE_TYPE, **one_of("CoverageType", plan.COVERAGE_TYPES))
    ]
    coverage: PlanCoverage
    regions: list[RegionCode]
    sponsor_profiles: list[SponsorProfile]
    notices: Notices
    excluded_organizations: Annotated[
        list[UUID], means("Always empty: whom else a plan is hidden from is not shown.", example=[])
    ]


class Operator(Shape):
    """A mobile network."""

    name: Annotated[str, means("How people call it.", example="Orange")]
    network_types: Annotated[list[str], means("Its generations.", example=["4G", "5G"])]


class CountryCoverage(Struct):
    """A country and the networks that a plan can use there."""

    country_code: CountryCode
    country_name: Annotated[str, means("Its short English name.", example="France")]
    operators: list[Operator]


class Coverage(Struct):
    """Where a plan works, network by network."""

    plan_id: Annotated[UUID, means("The plan.")]
    countries: list[CountryCoverage]
    total_countries: TotalCountries
    total_operators: TotalOperators


class Region(Shape):
    """A part of the world and its countries."""

    code: RegionCode
    label: Annotated[str, means("Its English name.", example="Europe")]
    countries: Annotated[list[CountryCode], means("Its countries, sorted.")]


class PlanPage(Page[Plan]):
    """Plans."""


def show_plan(row: PlanRow) -> Plan:
    """Return a plan that the reader may see; not from whom else it is hidden."""
    terms = row.terms
    countries = [each.country_code for each in terms.coverage]
    return Plan.of(
        row,
        terms,
        partner_cost=format_amount(terms.retail_price_micros),
        data_gb=terms.data_mb / MB_PER_GB,
        coverage=PlanCoverage(countries, len(countries), _count_operators(terms)),
        regions=regions.regions_of(countries),
        notices=terms.notices or [],
        excluded_organizations=[],
    )


def show_country(code: str, operators: Iterable[plan.MobileOperator]) -> CountryCoverage:
    return CountryCoverage(code, regions.country_name(code), [*map(Operator.of, operators)])


def _count_operators(terms: plan.PlanTerms) -> int:
    return sum(len(each.operators) for each in terms.coverage)


NOT_A_COUNTRY = "Must be a country code of two letters (ISO 3166-1 alpha-2), such as FR."


class Country(Text):
    """A country code of the catalogue, in upper or lower case."""

    def read(self, value: Any) -> str:
        text: str = super().read(value)
        code = text.upper()
        # ASCII only: `ß` in upper case is `SS`, South Sudan.
        if not (text.isascii() and is_country(code)):
            meant = code_meant(text)
            more = f" {country_name(meant)} is {meant}." if meant else ""
            raise ValidationError(NOT_A_COUNTRY + more)
        return code


class TopupQuery(Query):
    """Which plans to list for a link; an empty filter counts as absent."""

    country = Country(
        "Only with this country (ISO 3166-1 alpha-2), in upper or lower case.",
        pattern="^([A-Za-z]{2})?$",
        examples=["FR"],
    )
    search = Search("name, id, `provider_plan_id` or English name of a country")
    max_price = Money(
        "Only those that cost you at most this, in the currency of your wallet.",
        pattern=f"^({AMOUNT[1:-1]})?$",
    )
    sort = choice(
        SORTS,
        "The order, with `-` from behind. Plans alike in it stand by name, then id.",
        "PlanSort",
    )


class PlanQuery(TopupQuery, PageQuery):
    """Which plans to list; an empty filter counts as absent."""

    region = choice(REGIONS, "Only with a country of this region.", "RegionCode", examples=["EU"])
    coverage_type = choice(plan.COVERAGE_TYPES, COVERAGE_TYPE, "CoverageType")
    sponsor_profile = Text("Only with the sponsor profile of this id or name.", validate=NO_NUL)


def _load_plan(caller: Caller, given: Given[Any], plan_id: str) -> PlanRow:
    parts, wanted = given.parts, parse_id(plan_id)
    wait_for(parts, parts.plans.name)
    row = parts.plans.load_visible(parts.views, caller.organization_id, wanted)
    if row is None:
        raise NotFound
    return row.at(parts.clock())


blueprint = Group("Plans", "plans", description=__doc__)
blueprint.loaders["plan_id"] = _load_plan


@blueprint.operation(
    "GET /v1/plans",
    query=PlanQuery,
    reply=example("A page of plans.", PlanPage),
    leads_to=link_to("read_plan", plan_id="/data/data/0/id"),
    tagged=True,
    invalid={"country": NOT_A_COUNTRY},
)
def list_plans(caller: Caller, given: Given[None]) -> Page[Plan]:
    """List the plans that you can buy, by name unless `sort` says otherwise.

    All filters can be combined. A page past the end is an empty list.
    """
    parts, query = given.parts, given.query
    wait_for(parts, parts.plans.name)
    wanted = PlanFilter(parts.clock(), **filters_of(query))
    rows, total = parts.views.read(parts.plans.page, caller.organization_id, wanted, part_of(query))
    return show_page([*map(show_plan, rows)], total, query)


@blueprint.operation(
    "GET /v1/plans/regions",
    reply=example("The regions.", list[Region], "RegionsReply"),
    tagged=True,
)
def list_regions(_: Caller, __: Given[None]) -> list[Region]:
    """List the regions and their countries.

    Each country belongs to exactly one region, by UN M49. A plan matches a region when it covers
    at least one of its countries.
    """
    return [*map(Region.of, regions.REGIONS.values())]


@blueprint.operation(
    "GET /v1/plans/<plan_id>",
    reply=example("The plan.", Plan),
    leads_to=link_to("read_plan_coverage", plan_id="/data/id"),
    tagged=True,
)
def read_plan(_: Caller, given: Given[PlanRow]) -> Plan:
    """Read one plan.

    404 for one that is hidden from you, for whatever reason.
    """
    return show_plan(given.found)


@blueprint.operation(
    "GET /v1/plans/<plan_id>/coverage",
    reply=example("Where the plan works.", Coverage),
    tagged=True,
)
def read_plan_coverage(_: Caller, given: Given[PlanRow]) -> Coverage:
    """Read where a plan works.

    Every country with the networks that the plan can use there, and their generations.
    """
    plan_id, terms = given.found.id, given.found.terms
    countries = [show_country(each.country_code, each.operators) for each in terms.coverage]
    return Coverage(plan_id, countries, len(countries), _count_operators(terms))
