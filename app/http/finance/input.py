"""Input of usage: the days, and what to group by."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from marshmallow import ValidationError, fields

from app.http.edge.input import Query, described
from app.http.edge.replies import NAME, OR_EMPTY
from projections.models.usage import DIMENSIONS, Dimension

NOT_A_DAY = "Must be a date, such as 2026-11-21."
NOT_GROUPS = f"Must be one or two of {', '.join(DIMENSIONS)}, with a comma between them."
GROUPS_MAX = 2
_ONE = f"({'|'.join(DIMENSIONS)})"
_DAY = described(
    "",
    anyOf=[{"type": "string", "format": "date"}, OR_EMPTY],
    examples=["2026-11-01"],
    **{NAME: "DayFilter"},
)


class Day(fields.Field[date]):
    """A day in UTC."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> date:
        _ = attr, data, kwargs
        try:
            day = date.fromisoformat(value)
        except ValueError:
            raise ValidationError(NOT_A_DAY) from None
        if day.isoformat() != value:  # Python also reads 20261121 and 2026-W47-6.
            raise ValidationError(NOT_A_DAY)
        return day


class Groups(fields.Field[Sequence[Dimension]]):
    """What to group by; one that is named twice counts once."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> Sequence[Dimension]:
        _ = attr, data, kwargs
        named = value.split(",")
        found = [each for each in DIMENSIONS if each in named]
        if len(named) > GROUPS_MAX or not {*named} <= {*DIMENSIONS}:
            raise ValidationError(NOT_GROUPS)
        return sorted(found, key=named.index)


class UsageQuery(Query):
    """Which days, and how to group them; an empty filter counts as absent."""

    since = Day(
        data_key="from", metadata=_DAY | {"description": "From this day on (UTC), by `charged_at`."}
    )
    until = Day(data_key="to", metadata=_DAY | {"description": "Up to the day before this one."})
    group_by = Groups(
        load_default=("month",),
        metadata=described(
            "One or two of `day`, `month`, `kind` and `plan`, with a comma between them.",
            type="string",
            pattern=f"^({_ONE}(,{_ONE})?)?$",
            default="month",
            examples=["month,kind"],
        ),
    )
