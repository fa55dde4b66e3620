"""Wallets and transactions."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields, pre_load, validate

from app.http.schemas.envelope import Output, described, reply
from app.http.schemas.page import PageQuery, page_reply
from projections.transactions import KINDS

REFERENCE_CHARS_MAX = 255
FILTERS = ("kind", "from", "to", "reference")
NOT_A_TIME = (
    "Must be an ISO 8601 time with an offset or Z, such as 2026-11-21T08:00:00Z, or a date, "
    "such as 2026-11-21, which is its first instant in UTC."
)
AMOUNT = described("A decimal with two to six decimals.", example="12.50")
CURRENCY = described("ISO 4217.", example="USD")

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


class Wallet(Output):
    """A balance."""

    balance = fields.String(required=True, metadata=AMOUNT)
    currency = fields.String(required=True, metadata=CURRENCY)


class Reference(Output):
    """What money was for."""

    type = fields.String(required=True, metadata=described("What it names.", example="job"))
    id = fields.String(required=True, metadata=described("Its id."))


class Transaction(Output):
    """One entry of the wallet."""

    id = fields.UUID(required=True, metadata=described("The transaction."))
    sequence = fields.Integer(
        required=True, metadata=described("1, 2, 3 … in each wallet, without a gap.")
    )
    kind = fields.String(required=True, metadata=described("What it was.", enum=list(KINDS)))
    amount = fields.String(required=True, metadata=AMOUNT)
    direction = fields.String(
        required=True,
        metadata=described(
            "Whether it took from the balance or added to it.", enum=["debit", "credit"]
        ),
    )
    currency = fields.String(required=True, metadata=CURRENCY)
    charged_at = fields.String(
        required=True, metadata=described("When it was entered (UTC).", format="date-time")
    )
    plan_name = fields.String(
        required=True, allow_none=True, metadata=described("The plan it paid for, if any.")
    )
    description = fields.String(required=True, metadata=described("The same, for people."))
    reference = fields.Nested(Reference, required=True)
    metadata = fields.Dict(required=True, metadata=described("More about it, by kind."))
    balance_after = fields.String(required=True, metadata=AMOUNT)
    position = fields.Integer(
        required=True, metadata=described("Its place in the event log: rising, with gaps.")
    )


WalletReply = reply("WalletReply", fields.Nested(Wallet, required=True))
TransactionReply = reply("TransactionReply", fields.Nested(Transaction, required=True))
TransactionPageReply = page_reply("TransactionPageReply", Transaction)
