"""The root of every aggregate and event: one place that says how an event comes about."""

from dataclasses import field
from datetime import datetime
from typing import Any, Self, cast
from uuid import UUID

from eventsourcing.domain import AggregateCreated, AggregateEvent, BaseAggregate

from domain.cause import Cause


class Event(AggregateEvent):
    """A fact of the past. Each concrete event has a `TOPIC` that outlives any rename.

    An event carries all that its decision used, so replay asks nobody; `request_id` names the
    request that caused it.
    """

    request_id: str


class Created(Event, AggregateCreated):
    """The first fact of a stream."""


class ByOperator(Event):
    """What an operator's command may have caused; `actor` says who ran it, None: no operator.

    Entries of a wallet are none of these: a partner may see their bytes.
    """

    actor: str | None = field(default=None, kw_only=True)


class Root(BaseAggregate[UUID]):
    """An aggregate: public methods decide and may refuse, events only assign.

    `eventsourcing.domain.Aggregate` would give every child a `Created` event without a topic of
    its own, therefore the library's base class is used.
    """

    # The server whose log it was read from or appended to; None: no log knows it yet. Another
    # server may not know what this one knew.
    read_from = cast("str | None", None)  # Without an annotation, so that it is no field.

    class Event(Event):
        """The events of this aggregate."""

    @classmethod
    def begin(cls, event: type[Created], cause: Cause, stream_id: UUID, **facts: Any) -> Self:
        """Make a new aggregate by its first event."""
        return cls._create(
            event,
            id=stream_id,
            timestamp=cause.at,
            request_id=cause.request_id,
            **_who(event, cause),
            **facts,
        )

    def record(self, event: type[Event], cause: Cause, **facts: Any) -> None:
        """Append the next event and let it change this aggregate."""
        self.trigger_event(
            event,
            timestamp=cause.at,
            request_id=cause.request_id,
            **_who(event, cause),
            **facts,
        )

    @property
    def last_event_at(self) -> datetime:
        """The moment of the newest event."""
        return self.modified_on


def _who(event: type[Event], cause: Cause) -> dict[str, str]:
    """Return the operator as a fact of an event that keeps it."""
    if cause.actor is None or not issubclass(event, ByOperator):
        return {}
    return {"actor": cause.actor}
