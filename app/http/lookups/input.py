"""Input of lookups: one phone number, or the list of numbers of a job."""

import re
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, fields, validate

from app.http.edge.input import (
    NOT_A_LIST,
    IdempotencyHeader,
    JsonNumber,
    PageQuery,
    Query,
    Reads,
    Text,
    WholeNumber,
    choice,
    in_body,
    in_query,
    messages_shown,
)
from app.http.edge.request import CURRENT, Given
from app.http.edge.schemas import OR_EMPTY
from domain.errors import ValidationFailed
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
        if not isinstance(value, str):
            raise ValidationError(NOT_A_STRING)
        if not _E164.fullmatch(value):
            raise ValidationError(NOT_E164)
        return value


class PhoneNumbers(Reads, fields.List[str]):
    """The numbers of a job: unique, at least one, at most BULK_NUMBERS_MAX.

    Checked in one loop, because a field for each number would take longer than looking them up.
    """

    def __init__(self, says: str, **kwargs: Any) -> None:
        super().__init__(says, fields.String(metadata={"pattern": PATTERN}), **kwargs)

    def read(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValidationError(NOT_A_LIST)
        limit = CURRENT.get().parts.settings.bulk_numbers_max
        if not 1 <= len(value) <= limit:
            raise ValidationError(f"Must hold 1 to {limit} numbers.")
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


NUMBER: Any = {"pattern": PATTERN, "examples": [EXAMPLE]}
AGE: Any = {
    "says": "How many seconds old the answer may be; 0 asks the provider anew. Without it an "
    "answer may be as old as this installation keeps them. It is a part of the request that an "
    "`Idempotency-Key` stands for.",
    "highest": MAX_AGE_S,
    "lowest": 0,
    "wanted": NOT_AN_AGE,
    "examples": [0],
}


class QueryNumber(PhoneNumber):
    """A number in a query; decoding turns an unencoded `+` into a space."""

    def read(self, value: Any) -> str:
        return super().read(f"+{value[1:]}" if value.startswith(" ") else value)


class LookupQuery(Schema):
    """The number in the query."""

    phone_number = QueryNumber(
        "A number in E.164 form; `+` is written `%2B`. It stands here or in the body; where it "
        "stands in neither, the reply is 422.",
        **NUMBER,
    )
    max_age = WholeNumber(**AGE)


class LookupBody(Schema):
    """The number in the body, for clients that keep it out of the URL."""

    example: ClassVar = {"phone_number": EXAMPLE}

    phone_number = PhoneNumber("A number in E.164 form.", required=True, **NUMBER)
    max_age = JsonNumber(**AGE)


_KEY = "HTTP_IDEMPOTENCY_KEY"
_QUERY, _BODY, _HEADERS = LookupQuery(), LookupBody(), IdempotencyHeader()


def read_number(given: Given[Any], body: bytes) -> None:
    """Read what a lookup is sent, as flask-smorest would in three times the time.

    A number in the query need not stand in the body, and is not read there.
    """
    given.query = _read(_QUERY, in_query(_QUERY, given.sent_query))
    sent = in_body(body) if body else {}
    if "phone_number" in given.query:
        sent.pop("phone_number", None)
    if sent or "phone_number" not in given.query:
        given.body = _load(_BODY, sent, given.query.keys())
    if _KEY in given.environ:
        given.headers = _read(_HEADERS, {"Idempotency-Key": given.environ[_KEY]})


def _read(schema: Schema, sent: dict[str, Any]) -> dict[str, Any]:
    """Return what fields make of what was sent; the schema, without hooks, finds all mistakes."""
    read = {}
    try:
        for name, field in schema.fields.items():
            if (sent_as := field.data_key or name) in sent:
                read[name] = field.deserialize(sent[sent_as])
    except ValidationError:
        return _load(schema, sent)
    return read


def _load(schema: Schema, sent: dict[str, Any], partial: Any = ()) -> dict[str, Any]:
    try:
        return {**schema.load(sent, partial=partial)}
    except ValidationError as error:  # What was sent comes first, for it may be misspelt.
        wrong = sorted(error.messages_dict.items(), key=lambda each: each[0] not in sent)
        raise ValidationFailed(messages_shown(dict(wrong))) from None


class BulkBody(Schema):
    """The numbers of a job."""

    example: ClassVar = {"phone_numbers": [EXAMPLE, "+14155552671"]}

    phone_numbers = PhoneNumbers(
        "Numbers in E.164 form, all different.", required=True, minItems=1, uniqueItems=True
    )


class JobsQuery(PageQuery):
    """Which jobs to list."""

    status = choice(STATUSES, "Only those with this status.", "KnownJobStatus")


class ResultsQuery(Query):
    """Which results of a job to send, and in which form."""

    format = choice(
        FORMATS, "The form; without it the one that `Accept` prefers, else JSON.", "ResultsFormat"
    )
    status = choice(ITEM_STATUSES, "Only items with this status.", "KnownJobItemStatus")


class JobQuery(Query):
    """What of a job is asked for."""

    shown = Text(
        "`summary`: without its items.",
        data_key="fields",
        validate=validate.Equal("summary", error=NOT_SUMMARY),
        **one_of("JobFields", ["summary"], OR_EMPTY),
    )
