"""Transactions: what they are filtered by."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields, pre_load, validate

from app.http.edge.input import described
from app.http.edge.schemas import PageQuery
from projections.models.transactions import KINDS

REFERENCE_CHARS_MAX = 255
FILTERS = ("kind", "from", "to", "reference")
NOT_A_TIME = (
    "Must be an ISO 8601 time with an offset or Z, such as 2026-11-21T08:00:00Z, or a date, "
    "such as 2026-11-21, which is its first instant in UTC."
)

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_MOMENT = described(
    "", type="string", oneOf=[{"format": "date-time"}, {"format": "date"}], example="2026-11-01"
)


class Moment(fields.Field[datetime]):
    """A moment with its offset, or a date, which is its first instant in UTC.

    A time without an offset could mean any hour of a day.
    """

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> datetime:
        _ = attr, data, kwargs
        if not isinstance(value, str):
            raise ValidationError(NOT_A_TIME)
        try:
            # A `+` that was not encoded arrives as a space, and only an offset can follow one.
            if _DATE.fullmatch(value):
                return datetime.fromisoformat(value).replace(tzinfo=UTC)
            moment = datetime.fromisoformat(value.replace(" ", "+"))
        except ValueError:
            raise ValidationError(NOT_A_TIME) from None
        if moment.tzinfo is None:
            raise ValidationError(NOT_A_TIME)
        return moment


class TransactionQuery(PageQuery):
    """Which transactions are asked for; an empty filter is none."""

    kind = fields.String(
        validate=validate.OneOf(KINDS), metadata=described("Only of this kind.", enum=list(KINDS))
    )
    since = Moment(
        data_key="from",
        metadata=_MOMENT
        | {"description": "Only at this time or later; a date is its first instant, UTC."},
    )
    until = Moment(
        data_key="to",
        metadata=_MOMENT
        | {"description": "Only before this time; a date is its first instant, UTC."},
    )
    reference = fields.String(
        validate=[
            validate.Length(max=REFERENCE_CHARS_MAX),
            validate.ContainsNoneOf("\0", error="Must not hold a NUL character."),
        ],
        metadata=described("Only for the thing with this id, such as a job."),
    )

    @pre_load
    def drop_empty_filters(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Read `?kind=` as no filter."""
        return {name: value for name, value in data.items() if value or name not in FILTERS}
