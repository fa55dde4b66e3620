"""Plans: what they are filtered by."""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, pre_load, validate

from app.http.catalogue.replies import COVERAGE_TYPE
from app.http.edge.input import described
from app.http.edge.schemas import PageQuery
from domain.catalogue.plan import COVERAGE_TYPES
from domain.regions import REGIONS, is_country

FILTERS = ("region", "country", "coverage_type", "sponsor_profile")
NOT_A_COUNTRY = "Must be a country code of two letters (ISO 3166-1 alpha-2), such as FR."

ONLY_COUNTRY = described(
    "Only with this country (ISO 3166-1 alpha-2), in upper or lower case.", example="DE"
)


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
        metadata=described("Only with a country of this region.", enum=list(REGIONS), example="EU"),
    )
    country = Country(metadata=ONLY_COUNTRY)
    coverage_type = fields.String(
        validate=validate.OneOf(COVERAGE_TYPES),
        metadata=described(COVERAGE_TYPE, enum=list(COVERAGE_TYPES)),
    )
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
