"""Schemas that requests share: empty filters, and which page of a list is asked for."""

import re
from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, pre_load, validate

from app.http.edge.input import described

PER_PAGE_MAX = 100
PAGE_FIELDS = ("page", "per_page")  # An empty one is a mistake.
PAGE_MAX = 10**12  # Far beyond any list, but its offset still fits into the database's 64 bits.

PAST_ALL = "No list is that long; the number of its last page stands in `last_page`."
NO_NUL = validate.Regexp(r"^[^\x00]*$", error="Must not hold a NUL character.")
_DIGITS = re.compile(r"[0-9]{1,100}", re.ASCII)


class WholeNumber(fields.Integer):
    """A number in plain ASCII digits; Python's `int` would also accept `1_000` and ` 1 `.

    A value above `highest` gets the message `beyond`.
    """

    def __init__(
        self, highest: int, wanted: str = "", beyond: str = "", lowest: int = 1, **kwargs: Any
    ) -> None:
        metadata = {**kwargs.pop("metadata", {}), "minimum": lowest, "maximum": highest}
        super().__init__(metadata=metadata, **kwargs)
        self.lowest, self.highest = lowest, highest
        self.wanted = wanted or f"Must be a whole number from {lowest} to {highest}."
        self.beyond = beyond or self.wanted

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> int:
        _ = attr, data, kwargs
        if not isinstance(value, str) or not _DIGITS.fullmatch(value) or int(value) < self.lowest:
            raise ValidationError(self.wanted)
        if int(value) > self.highest:
            raise ValidationError(self.beyond)
        return int(value)


class Query(Schema):
    """What a query asks for; an empty filter counts as absent."""

    @pre_load
    def drop_empty_filters(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Treat `?status=` as no filter."""
        return {name: value for name, value in data.items() if value or name in PAGE_FIELDS}


class PageQuery(Query):
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
