"""Input of lookups: one phone number, or the list of numbers of a job."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, fields, pre_load, validate, validates_schema

from app.http.edge.input import (
    NOT_A_LIST,
    JsonNumber,
    Plain,
    Query,
    Reads,
    WholeNumber,
    choice,
    described,
)
from app.http.edge.paging import PageQuery
from app.http.edge.replies import KNOWN, OR_EMPTY
from app.http.edge.request import container, request_context
from projections.engine.shape import one_of
from projections.models.jobs import STATUSES

PATTERN = r"^\+[1-9][0-9]{1,14}$"
NOT_E164 = "Must be an E.164 number: a plus sign, then 2 to 15 digits of which the first is not 0."
NOT_A_STRING = "Not a valid string."
MAX_AGE_S = 31_536_000
NOT_AN_AGE = f"Must be a whole number of seconds from 0 to {MAX_AGE_S}."
FORMATS = ("json", "csv", "ndjson")
ITEM_STATUSES = ("pending", "completed", "failed", "cancelled")
NOT_SUMMARY = "Must be summary."
EXAMPLE = "+971508245915"

_E164 = re.compile(PATTERN)


def is_e164(text: str) -> bool:
    """Tell whether the whole text, including any final newline, is a number in E.164 form."""
    return _E164.fullmatch(text) is not None


class PhoneNumber(Reads, fields.String):
    """A number in E.164 form (ITU-T E.164), whole and ASCII."""

    def read(self, value: Any) -> str:
        number: str = super().read(value)
        if not is_e164(number):
            raise ValidationError(NOT_E164)
        return number


class PhoneNumbers(Reads, fields.List[str]):
    """The numbers of a job: unique, at least one, at most BULK_NUMBERS_MAX.

    Checked in one loop, because a field for each number would take longer than looking them up.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(fields.String(metadata={"pattern": PATTERN}), **kwargs)

    def read(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValidationError(NOT_A_LIST)
        limit = container().settings.bulk_numbers_max
        if not 1 <= len(value) <= limit:
            message = f"Must hold 1 to {limit} numbers."
            raise ValidationError(message)
        errors = _errors(value)
        if errors:
            raise ValidationError(errors)
        return value


def _errors(numbers: list[Any]) -> dict[Any, Any]:
    first: dict[str, int] = {}
    found: dict[Any, Any] = {}
    for index, number in enumerate(numbers):
        if not isinstance(number, str):
            found[index] = [NOT_A_STRING]
        elif not is_e164(number):
            found[index] = [NOT_E164]
        elif first.setdefault(number, index) != index:
            found[index] = [f"The same number stands at index {first[number]}."]
    return found


MISSING = "Missing data for required field."
NUMBER = described("A number in E.164 form.", pattern=PATTERN, examples=[EXAMPLE])


AGE: Any = {
    "highest": MAX_AGE_S,
    "lowest": 0,
    "wanted": NOT_AN_AGE,
    "metadata": described(
        "How many seconds old the answer may be; 0 asks the provider anew. Without it an answer "
        "may be as old as this installation keeps them. It is a part of the request "
        "that an `Idempotency-Key` stands for.",
        examples=[0],
    ),
}


class QueryNumber(PhoneNumber):
    """A number in a query; decoding turns an unencoded `+` into a space."""

    def read(self, value: Any) -> str:
        meant = f"+{value[1:]}" if value.startswith(" ") else value
        return super().read(meant)


class LookupQuery(Plain):
    """The number in the query."""

    phone_number = QueryNumber(
        metadata=NUMBER
        | {
            "description": "A number in E.164 form; `+` is written `%2B`. It stands here or in the "
            "body; where it stands in neither, the reply is 422."
        }
    )
    max_age = WholeNumber(**AGE)


class LookupBody(Schema):
    """The number in the body, for clients that keep it out of the URL."""

    in_document: ClassVar = {"required": ["phone_number"]}  # Without a number a body says nothing.
    may_be_absent = True
    example: ClassVar = {"phone_number": EXAMPLE}

    @staticmethod
    def needed() -> bool:
        """Tell whether the number must come in the body."""
        return "phone_number" not in request_context().sent_query

    phone_number = PhoneNumber(metadata=NUMBER)
    max_age = JsonNumber(**AGE)

    @pre_load
    def let_the_query_win(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Ignore the number of the body if there is one in the query."""
        if not self.needed():
            return {name: value for name, value in data.items() if name != "phone_number"}
        return data

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def need_a_number(self, _: dict[str, Any], given: Mapping[str, Any], **__: Any) -> None:
        """Report a missing number beside other errors; a misspelled field may be one."""
        if "phone_number" not in given and self.needed():
            raise ValidationError(MISSING, "phone_number")


class BulkBody(Schema):
    """The numbers of a job."""

    example: ClassVar = {"phone_numbers": [EXAMPLE, "+14155552671"]}

    phone_numbers = PhoneNumbers(
        required=True,
        metadata=described(
            "Numbers in E.164 form, all different.",
            minItems=1,
            uniqueItems=True,
        ),
    )


class JobsQuery(PageQuery):
    """Which jobs to list."""

    status = choice(STATUSES, "Only those with this status.", KNOWN + "JobStatus")


class ResultsQuery(Query):
    """Which results of a job to send, and in which form."""

    format = choice(
        FORMATS, "The form; without it the one that `Accept` prefers, else JSON.", "ResultsFormat"
    )
    status = choice(ITEM_STATUSES, "Only items with this status.", KNOWN + "JobItemStatus")


class JobQuery(Query):
    """What of a job is asked for."""

    shown = fields.String(
        data_key="fields",
        validate=validate.Equal("summary", error=NOT_SUMMARY),
        metadata=described(
            "`summary`: without its items.", **one_of("JobFields", ["summary"], OR_EMPTY)
        ),
    )
