"""What caused an event: the moment and the request; always passed, never read from a context."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

OPERATOR = "operator:"  # Before the id of an operator who is an actor.
# A process whose clock differs by more from that of the database does no work. NTP keeps this.
CLOCK_OFF_MAX = timedelta(seconds=2)
# No lease, rest or intent lasts longer than five minutes. One that ends later was written by a
# clock that was ahead and has been set back, so it counts as over: nothing waits for it for ever.
AHEAD_MAX = timedelta(minutes=6)


Clock = Callable[[], datetime]  # Tells the present moment, timezone-aware, in UTC.


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
    return datetime.now(UTC)


def lies_ahead(moment: datetime, now: datetime) -> bool:
    """Tell whether the end of a lease, rest or intent is still to come; see AHEAD_MAX."""
    return now < moment <= now + AHEAD_MAX
