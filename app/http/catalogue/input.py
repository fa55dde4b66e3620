"""Input of plans: the filters of a list."""

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validate

from app.http.catalogue.replies import COVERAGE_TYPE
from app.http.edge.input import NO_NUL, Query, described
from app.http.edge.paging import PageQuery
from app.http.edge.replies import OR_EMPTY, one_of
from domain.catalogue.plan import COVERAGE_TYPES
from domain.regions import REGIONS, is_country

FILTERS = ("region", "country", "coverage_type", "sponsor_profile")
NOT_A_COUNTRY = "Must be a country code of two letters (ISO 3166-1 alpha-2), such as FR."

ONLY_COUNTRY = described(
    "Only with this country (ISO 3166-1 alpha-2), in upper or lower case.",
    pattern="^([A-Za-z]{2})?$",
    examples=["DE"],
)


class Country(fields.String):
    """A country code of the catalogue, in upper or lower case."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        code = text.upper()
        # ASCII only: `ß` in upper case is `SS`, South Sudan.
        if not (text.isascii() and is_country(code)):
            raise ValidationError(NOT_A_COUNTRY)
        return code


class PlanQuery(PageQuery):
    """Which plans to list; an empty filter counts as absent."""

    region = fields.String(
        validate=validate.OneOf(REGIONS),
        metadata=described(
            "Only with a country of this region.",
            **one_of("RegionCode", REGIONS, OR_EMPTY),
            examples=["EU"],
        ),
    )
    country = Country(metadata=ONLY_COUNTRY)
    coverage_type = fields.String(
        validate=validate.OneOf(COVERAGE_TYPES),
        metadata=described(COVERAGE_TYPE, **one_of("CoverageType", COVERAGE_TYPES, OR_EMPTY)),
    )
    sponsor_profile = fields.String(
        validate=NO_NUL,
        metadata=described("Only with the sponsor profile of this id or name."),
    )


class TopupQuery(Query):
    """Which plans to list for a link; an empty filter counts as absent."""

    country = Country(metadata=ONLY_COUNTRY)
