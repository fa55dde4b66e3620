"""What caused an event: the moment and the request; passed to every command, never ambient."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

# No work is stamped, or waits, so far ahead: one that is was written before a clock was set back.
AHEAD_MAX = timedelta(minutes=1)


class Clock(Protocol):
    """Tells the present moment, aware and in UTC."""

    def __call__(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Cause:
    """The moment a command is decided at, the request that asked for it, and who ran it.

    `actor` is an operator, such as `os:alice`; None for everybody else.
    """

    at: datetime
    request_id: str
    actor: str | None = None


def utc_now() -> datetime:
    """The wall clock, as the container hands it out."""
    return datetime.now(UTC)


def lies_ahead(moment: datetime, now: datetime, at_most: timedelta = AHEAD_MAX) -> bool:
    """Tell whether a moment is still to come; one farther ahead shows a clock that was set back."""
    return now < moment <= now + at_most
