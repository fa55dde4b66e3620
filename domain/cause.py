"""What caused an event: the moment and the request; always passed, never read from a context."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

OPERATOR = "operator:"  # Before the id of an operator who is an actor.
# No time is written further ahead than this, so a later time shows that a clock was set back.
AHEAD_MAX = timedelta(minutes=1)


class Clock(Protocol):
    """Tells the present moment, timezone-aware, in UTC."""

    def __call__(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Cause:
    """The moment at which a command is decided, the request that asked for it, and who ran it.

    `actor` is an operator: `operator:` and an id, or `os:alice` where there are no operators. It is
    None for everybody else.
    """

    at: datetime
    request_id: str
    actor: str | None = None


def is_operator(actor: str | None) -> bool:
    """Tell whether an actor is a person with a key, and not a user of the operating system."""
    return actor is not None and actor.startswith(OPERATOR)


def utc_now() -> datetime:
    """Return the time of the wall clock."""
    return datetime.now(UTC)


def lies_ahead(moment: datetime, now: datetime, at_most: timedelta = AHEAD_MAX) -> bool:
    """Tell whether a moment is still to come; False if it is too far: a clock was set back."""
    return now < moment <= now + at_most
