"""Pages of lists: what is asked for, and how the reply nests."""

import re
from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields

from app.http.schemas.envelope import Output, described, reply

PER_PAGE_MAX = 100
PAGE_MAX = 10**12  # Far past any list, and its offset still fits the database's 64 bits.

PAST_ALL = "No list is that long; the number of its last page stands in `last_page`."
_DIGITS = re.compile(r"[0-9]{1,100}", re.ASCII)


class WholeNumber(fields.Integer):
    """A number in plain ASCII digits; `int` alone would also take `1_000` and ` 1 `.

    What is past `highest` is told `beyond`.
    """

    def __init__(self, highest: int, wanted: str = "", beyond: str = "", **kwargs: Any) -> None:
        metadata = {**kwargs.pop("metadata", {}), "minimum": 1, "maximum": highest}
        super().__init__(metadata=metadata, **kwargs)
        self.highest = highest
        self.wanted = wanted or f"Must be a whole number from 1 to {highest}."
        self.beyond = beyond or self.wanted

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> int:
        _ = attr, data, kwargs
        if not isinstance(value, str) or not _DIGITS.fullmatch(value) or int(value) < 1:
            raise ValidationError(self.wanted)
        if int(value) > self.highest:
            raise ValidationError(self.beyond)
        return int(value)


class PageQuery(Schema):
    """Which page is asked for."""

    page = WholeNumber(
        PAGE_MAX,
        "Must be a whole number, 1 or more.",
        PAST_ALL,
        load_default=1,
        metadata=described("The page, from 1."),
    )
    per_page = WholeNumber(
        PER_PAGE_MAX, load_default=50, metadata=described("How many items make a page.")
    )


class PageMeta(Output):
    """Where a page stands in its list."""

    total = fields.Integer(required=True, metadata=described("Items of all pages."))
    per_page = fields.Integer(required=True, metadata=described("Items of a full page."))
    current_page = fields.Integer(required=True, metadata=described("This page."))
    last_page = fields.Integer(required=True, metadata=described("The last page, at least 1."))


def page_reply(name: str, item: type[Schema]) -> type[Schema]:
    """Return the schema of a reply that holds one page of items."""
    members: dict[str, fields.Field[Any]] = {
        "data": fields.List(fields.Nested(item), required=True),
        "meta": fields.Nested(PageMeta, required=True),
    }
    page = Output.from_dict(members, name=name.replace("Reply", ""))
    return reply(name, fields.Nested(page, required=True))
