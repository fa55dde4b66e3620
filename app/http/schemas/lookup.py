"""Lookups: the number that is asked for, or the numbers of a job."""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, pre_load, validates_schema

from app.http.parser import described
from app.http.request_context import current_request
from app.http.schemas.phone_number import EXAMPLE, PATTERN, PhoneNumber, PhoneNumbers

MISSING = "Missing data for required field."
NUMBER = described("A number in E.164 form.", pattern=PATTERN, example=EXAMPLE)


class QueryNumber(PhoneNumber):
    """A number in a query; form decoding makes a space of a `+` that was not encoded."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> str:
        meant = f"+{value[1:]}" if value.startswith(" ") else value
        return super()._deserialize(meant, attr, data, **kwargs)


class LookupQuery(Schema):
    """The number in the query."""

    phone_number = QueryNumber(
        metadata=NUMBER | {"description": "A number in E.164 form; `+` is written `%2B`."}
    )


def no_number_in_query() -> bool:
    """Tell whether the number has to stand in the body."""
    return "phone_number" not in current_request().args


class LookupBody(Schema):
    """The number in the body, for who does not want it in a URL."""

    phone_number = PhoneNumber(metadata=NUMBER)

    @pre_load
    def let_the_query_win(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Leave the number of the body alone when there is one in the query."""
        if not no_number_in_query():
            return {name: value for name, value in data.items() if name != "phone_number"}
        return data

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def need_a_number(self, _: dict[str, Any], given: Mapping[str, Any], **__: Any) -> None:
        """Tell of a missing number beside what else is wrong: another name was meant for it."""
        if "phone_number" not in given and no_number_in_query():
            raise ValidationError(MISSING, "phone_number")


class BulkBody(Schema):
    """The numbers of a job."""

    phone_numbers = PhoneNumbers(
        required=True,
        metadata=described(
            "Numbers in E.164 form, all different.",
            minItems=1,
            maxItems=1000,
            uniqueItems=True,
            example=[EXAMPLE, "+971508245915"],
        ),
    )
