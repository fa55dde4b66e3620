"""The replies about plans: what they offer, what they cost and where they work; with examples."""

from collections.abc import Iterable
from typing import Annotated, Final
from uuid import UUID

from msgspec import Struct

from app.http.edge.paging import Page, PageMeta
from app.http.edge.replies import META, PLAN_ID, Amount, Currency, Reply, means, one_of
from domain import regions
from domain.catalogue import plan
from domain.money import format_amount
from projections.models.plans import PlanRow

MB_PER_GB = 1000
COVERAGE_TYPE: Final = (
    "`local`: one country; `regional`: several of one region; `global`: several regions."
)

CountryCode = Annotated[str, means("ISO 3166-1 alpha-2.", example="DE", pattern="^[A-Z]{2}$")]
RegionCode = Annotated[
    str,
    means(
        "A region; each country belongs to one.",
        example="EU",
        **one_of("RegionCode", regions.REGIONS),
    ),
]
TotalCountries = Annotated[int, means("How many countries it covers.", example=31)]
TotalOperators = Annotated[
    int, means("How many networks it can use, counted in each country.", example=58)
]


class SponsorProfile(Struct):
    """A profile of the network that an eSIM runs on."""

    id: Annotated[str, means("The profile.", example="sp-atlas")]
    name: Annotated[str, means("How people call it.")]
    color: Annotated[str, means("How it is shown.", example="#1F6FEB")]


class PlanCoverage(Struct):
    """Where a plan works, in short."""

    countries: list[CountryCode]
    total_countries: TotalCountries
    total_operators: TotalOperators


class Plan(Struct):
    """A data plan as its reader's organization can buy it."""

    id: Annotated[UUID, means("The plan.")]
    provider_plan_id: Annotated[
        str | None, means("Its id at the network; null: it cannot be bought yet.")
    ]
    name: Annotated[str, means("How people call it.")]
    partner_cost: Annotated[Amount, means("What your wallet pays for it.")]
    currency: Currency
    data_gb: Annotated[float, means("The data in GB; 1 GB is 1000 MB.", example=1.5)]
    data_mb: Annotated[int, means("The data in MB.", example=1500)]
    validity_days: Annotated[int, means("How many days it lasts from its first use.", example=30)]
    coverage_type: Annotated[
        str, means(COVERAGE_TYPE, **one_of("CoverageType", plan.COVERAGE_TYPES))
    ]
    coverage: PlanCoverage
    regions: list[RegionCode]
    sponsor_profiles: list[SponsorProfile]
    excluded_organizations: Annotated[
        list[UUID], means("Always empty: whom else a plan is hidden from is not shown.")
    ]


class Operator(Struct):
    """A mobile network."""

    name: Annotated[str, means("How people call it.")]
    network_types: Annotated[list[str], means("Its generations.", example=["4G", "5G"])]


class CountryCoverage(Struct):
    """A country and the networks that a plan can use there."""

    country_code: CountryCode
    country_name: Annotated[str, means("Its short English name.", example="Germany")]
    operators: list[Operator]


class Coverage(Struct):
    """Where a plan works, network by network."""

    plan_id: Annotated[UUID, means("The plan.")]
    countries: list[CountryCoverage]
    total_countries: TotalCountries
    total_operators: TotalOperators


class Region(Struct):
    """A part of the world and its countries."""

    code: RegionCode
    label: Annotated[str, means("Its English name.", example="Europe")]
    countries: Annotated[list[CountryCode], means("Its countries, sorted.")]


class PlanReply(Reply[Plan]):
    """The plan."""


class PlanPage(Page[Plan]):
    """Plans."""


class PlanPageReply(Reply[PlanPage]):
    """A page of plans."""


class CoverageReply(Reply[Coverage]):
    """Where the plan works."""


class RegionsReply(Reply[list[Region]]):
    """The regions."""


def show_plan(row: PlanRow) -> Plan:
    """Return a plan that the reader may see; not from whom else it is hidden."""
    terms = row.terms
    countries = [each.country_code for each in terms.coverage]
    return Plan(
        id=row.id,
        provider_plan_id=terms.provider_plan_id,
        name=terms.name,
        partner_cost=format_amount(terms.retail_price_micros),
        currency=terms.currency,
        data_gb=terms.data_mb / MB_PER_GB,
        data_mb=terms.data_mb,
        validity_days=terms.validity_days,
        coverage_type=terms.coverage_type,
        coverage=PlanCoverage(countries, len(countries), _count_operators(terms)),
        regions=regions.regions_of(countries),
        sponsor_profiles=[show_profile(each) for each in terms.sponsor_profiles],
        excluded_organizations=[],
    )


def show_coverage(row: PlanRow) -> Coverage:
    """Return the networks of a plan, country by country."""
    countries = [show_country(each.country_code, each.operators) for each in row.terms.coverage]
    return Coverage(row.id, countries, len(countries), _count_operators(row.terms))


def show_country(code: str, operators: Iterable[plan.MobileOperator]) -> CountryCoverage:
    """Return a country with its networks."""
    shown = [Operator(each.name, each.network_types) for each in operators]
    return CountryCoverage(code, regions.country_name(code), shown)


def show_profile(profile: plan.SponsorProfile) -> SponsorProfile:
    """Return a sponsor profile as partners see it."""
    return SponsorProfile(profile.id, profile.name, profile.color)


def show_regions() -> list[Region]:
    """Return all regions."""
    return [Region(each.code, each.label, each.countries) for each in regions.REGIONS.values()]


def _count_operators(terms: plan.PlanTerms) -> int:
    return sum(len(each.operators) for each in terms.coverage)


PLAN: Final = PlanReply(
    data=Plan(
        id=PLAN_ID,
        provider_plan_id="eu-5gb-30d",
        name="France and Monaco 5 GB",
        partner_cost="4.50",
        currency="USD",
        data_gb=5.0,
        data_mb=5000,
        validity_days=30,
        coverage_type="regional",
        coverage=PlanCoverage(["FR", "MC"], total_countries=2, total_operators=3),
        regions=["EU"],
        sponsor_profiles=[SponsorProfile("sp-atlas", "Atlas", "#1F6FEB")],
        excluded_organizations=[],
    ),
    meta=META,
)
PLAN_PAGE: Final = PlanPageReply(
    data=PlanPage([PLAN.data], PageMeta(total=1, per_page=50, current_page=1, last_page=1)),
    meta=META,
)
COVERAGE: Final = CoverageReply(
    data=Coverage(
        plan_id=PLAN_ID,
        countries=[
            CountryCoverage(
                "FR", "France", [Operator("Orange", ["4G", "5G"]), Operator("SFR", ["4G"])]
            ),
            CountryCoverage("MC", "Monaco", [Operator("Monaco Telecom", ["4G", "5G"])]),
        ],
        total_countries=2,
        total_operators=3,
    ),
    meta=META,
)
REGION_LIST: Final = RegionsReply(
    data=[Region("NA", "North America", ["BM", "CA", "GL", "PM", "US"])], meta=META
)
