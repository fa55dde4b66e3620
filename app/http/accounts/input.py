"""Input of transactions: the filters of a list."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from app.http.edge.input import PAGE_MAX, SHORT, PageQuery, Reads, Text, WholeNumber, choice
from app.http.edge.schemas import OR_EMPTY
from domain.money import format_amount, parse_amount
from projections.engine.shape import NAME
from projections.models.transactions import KINDS

AMOUNT = r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,6})?$"
NOT_AN_AMOUNT = (
    "Must be a string such as 12.50, with at most 12 digits and six decimals, and no needless 0 in "
    "front."
)
NOTHING = "Must be more than 0."
WORDS = r"^[!-~]([ -~]{0,253}[!-~])?$"
NOT_WORDS = "Must be 1 to 255 visible ASCII characters, without spaces around them."
NOT_A_TIME = (
    "Must be an ISO 8601 time with an offset or Z, such as 2026-11-21T08:00:00Z, or a date, "
    "such as 2026-11-21, which is its first instant in UTC."
)

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_FILTER: Any = {"examples": ["2026-11-01"], NAME: "TimeFilter"}


class Moment(Reads, fields.Field[datetime]):
    """A moment with its offset from UTC, or a date, which means its first instant in UTC.

    A time without an offset is refused, because it could mean any hour of a day.
    """

    def __init__(self, says: str, *, required: bool = False, **kwargs: Any) -> None:
        forms = [{"type": "string", "format": each} for each in ("date-time", "date")]
        more: Any = {"anyOf": forms} if required else {"anyOf": [*forms, OR_EMPTY], **_FILTER}
        about = f"{says}; a date is its first instant, UTC."
        super().__init__(about, required=required, **more, **kwargs)

    def read(self, value: Any) -> datetime:
        with suppress(TypeError, ValueError):  # As of a number.
            if _DATE.fullmatch(value):
                return datetime.fromisoformat(value).replace(tzinfo=UTC)
            # A `+` that was not percent-encoded arrives as a space; no other space is allowed.
            moment = datetime.fromisoformat(value.replace(" ", "+"))
            if moment.tzinfo is not None:
                return moment
        raise ValidationError(NOT_A_TIME)


class Money(Text):
    """An amount as a decimal string; becomes micro-units.

    With `most_micros` it is more than 0, and at most this.
    """

    def __init__(self, says: str, most_micros: float | None = None, **kwargs: Any) -> None:
        pattern = AMOUNT if most_micros is None else AMOUNT.replace("^", "^(?=.*[1-9])")
        super().__init__(says, form={"pattern": pattern, "examples": ["20.00"]}, **kwargs)
        self.most_micros = most_micros

    def read(self, value: Any) -> Any:
        try:
            micros = parse_amount(value)
        except (TypeError, ValueError):
            raise ValidationError(NOT_AN_AMOUNT) from None
        most = self.most_micros
        if most is not None and not 0 < micros <= most:
            wrong = f"Must be at most {format_amount(int(most))}." if micros else NOTHING
            raise ValidationError(wrong)
        return micros


def one_line(says: str) -> Text:
    """Return the field of one line of text that is kept for ever."""
    is_whole = validate.Regexp(WORDS.replace("$", r"\Z"), error=NOT_WORDS)
    return Text(says, required=True, validate=is_whole, pattern=WORDS)


class TransactionQuery(PageQuery):
    """Which transactions to list; an empty filter counts as absent."""

    kind = choice(KINDS, "Only of this kind.", "KnownTransactionKind")
    since = Moment("Only at this time or later", data_key="from")
    until = Moment("Only before this time", data_key="to")
    reference = Text("Only for the thing with this id, such as a job.", validate=SHORT)
    after_sequence = WholeNumber(
        "Only those behind this `sequence`, the oldest first; stands alone.", PAGE_MAX, lowest=0
    )

    @validates_schema
    def check_alone(self, data: dict[str, Any], **_: Any) -> None:
        if "after_sequence" in data and data.keys() - {"after_sequence", "page", "per_page"}:
            raise ValidationError(
                {"after_sequence": ["Must be given without kind, from, to and reference."]}
            )
