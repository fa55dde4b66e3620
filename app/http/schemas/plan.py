"""Plans: what they are filtered by, and what partners read of them."""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, pre_load, validate

from app.http.schemas.envelope import Output, described, reply
from app.http.schemas.page import PageQuery, page_reply
from app.http.schemas.wallet import AMOUNT, CURRENCY
from domain.plan import COVERAGE_TYPES
from domain.regions import REGIONS, is_country

FILTERS = ("region", "country", "coverage_type", "sponsor_profile")
NOT_A_COUNTRY = "Must be a country code of two letters (ISO 3166-1 alpha-2), such as FR."

COUNTRY = described("ISO 3166-1 alpha-2.", example="DE")
ONLY_COUNTRY = COUNTRY | {
    "description": "Only with this country (ISO 3166-1 alpha-2), in upper or lower case."
}
REGION = described("A region; each country belongs to one.", enum=list(REGIONS), example="EU")
COVERAGE_TYPE = described(
    "`local`: one country; `regional`: several of one region; `global`: several regions.",
    enum=list(COVERAGE_TYPES),
)
COUNTRIES_TOTAL = described("How many countries it covers.", example=31)
OPERATORS_TOTAL = described("How many networks it can use, counted in each country.", example=58)


class Country(fields.String):
    """A country code of the catalogue, in capital letters or small ones."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        code = text.upper()
        if not (text.isascii() and is_country(code)):  # Else `ß` would be South Sudan.
            raise ValidationError(NOT_A_COUNTRY)
        return code


class PlanQuery(PageQuery):
    """Which plans are asked for; an empty filter is none."""

    region = fields.String(
        validate=validate.OneOf(REGIONS),
        metadata=REGION | {"description": "Only with a country of this region."},
    )
    country = Country(metadata=ONLY_COUNTRY)
    coverage_type = fields.String(validate=validate.OneOf(COVERAGE_TYPES), metadata=COVERAGE_TYPE)
    sponsor_profile = fields.String(
        validate=validate.ContainsNoneOf("\0", error="Must not hold a NUL character."),
        metadata=described("Only with the sponsor profile of this id or name."),
    )

    @pre_load
    def drop_empty_filters(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Read `?region=` as no filter."""
        return {name: value for name, value in data.items() if value or name not in FILTERS}


class TopupQuery(Schema):
    """Which plans for a link are asked for; an empty filter is none."""

    country = Country(metadata=ONLY_COUNTRY)

    @pre_load
    def drop_empty_filters(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Read `?country=` as no filter."""
        return {name: value for name, value in data.items() if value}


class SponsorProfile(Output):
    """A profile of the network that an eSIM runs on."""

    id = fields.String(required=True, metadata=described("The profile.", example="sp-atlas"))
    name = fields.String(required=True, metadata=described("How people call it."))
    color = fields.String(required=True, metadata=described("How it is shown.", example="#1F6FEB"))


class PlanCoverage(Output):
    """Where a plan works, in short."""

    countries = fields.List(fields.String(metadata=COUNTRY), required=True)
    total_countries = fields.Integer(required=True, metadata=COUNTRIES_TOTAL)
    total_operators = fields.Integer(required=True, metadata=OPERATORS_TOTAL)


class Plan(Output):
    """A data plan as your organization can buy it."""

    id = fields.UUID(required=True, metadata=described("The plan."))
    provider_plan_id = fields.String(
        required=True,
        allow_none=True,
        metadata=described("Its id at the network; null: it cannot be bought yet."),
    )
    name = fields.String(required=True, metadata=described("How people call it."))
    partner_cost = fields.String(
        required=True, metadata=AMOUNT | {"description": "What your wallet pays for it."}
    )
    currency = fields.String(required=True, metadata=CURRENCY)
    data_gb = fields.Float(
        required=True, metadata=described("The data in GB; 1 GB is 1000 MB.", example=1.5)
    )
    data_mb = fields.Integer(required=True, metadata=described("The data in MB.", example=1500))
    validity_days = fields.Integer(
        required=True, metadata=described("How many days it lasts from its first use.", example=30)
    )
    coverage_type = fields.String(required=True, metadata=COVERAGE_TYPE)
    coverage = fields.Nested(PlanCoverage, required=True)
    regions = fields.List(fields.String(metadata=REGION), required=True)
    sponsor_profiles = fields.List(fields.Nested(SponsorProfile), required=True)
    excluded_organizations = fields.List(
        fields.UUID(),
        required=True,
        metadata=described("Always empty: whom else a plan is hidden from is not shown."),
    )


class Operator(Output):
    """A mobile network."""

    name = fields.String(required=True, metadata=described("How people call it."))
    network_types = fields.List(
        fields.String(), required=True, metadata=described("Its generations.", example=["4G", "5G"])
    )


class CountryCoverage(Output):
    """A country and the networks that a plan can use there."""

    country_code = fields.String(required=True, metadata=COUNTRY)
    country_name = fields.String(
        required=True, metadata=described("Its short English name.", example="Germany")
    )
    operators = fields.List(fields.Nested(Operator), required=True)


class Coverage(Output):
    """Where a plan works, network by network."""

    plan_id = fields.UUID(required=True, metadata=described("The plan."))
    countries = fields.List(fields.Nested(CountryCoverage), required=True)
    total_countries = fields.Integer(required=True, metadata=COUNTRIES_TOTAL)
    total_operators = fields.Integer(required=True, metadata=OPERATORS_TOTAL)


class Region(Output):
    """A part of the world and its countries."""

    code = fields.String(required=True, metadata=REGION)
    label = fields.String(required=True, metadata=described("Its English name.", example="Europe"))
    countries = fields.List(
        fields.String(metadata=COUNTRY), required=True, metadata=described("Its countries, sorted.")
    )


PlanReply = reply("PlanReply", fields.Nested(Plan, required=True))
PlanPageReply = page_reply("PlanPageReply", Plan)
CoverageReply = reply("CoverageReply", fields.Nested(Coverage, required=True))
RegionsReply = reply("RegionsReply", fields.List(fields.Nested(Region), required=True))
