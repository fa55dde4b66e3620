"""How old read models are, and a short wait until they have reached a position in the log."""

import time
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from threading import Event

from domain.blocking import blocking
from domain.errors import ServiceUnavailable
from projections.engine.positions import Position, Source

# A running projector needs a few milliseconds; for a stopped one the caller waits no longer.
WAIT_S = 0.25
STEP_MIN_S = 0.001
STEP_MAX_S = 0.01
# A projector that runs writes four times a second that it has seen the head.
STALE = timedelta(seconds=5)
REFRESH_S = 1.0  # A process looks at the age of its read models this often.


def wait_until_projected(source: Source, names: Collection[str], wait_s: float = WAIT_S) -> bool:
    """Wait until these read models have reached the head that the log had at the call.

    Their followers are hurried, because a commit of mere steps wakes none.

    Returns False when it took too long, or at once when one of them has stopped by an error.
    """
    goal = source.log.head()
    deadline = time.monotonic() + wait_s
    step_s = STEP_MIN_S
    pause = Event()
    while True:
        known = source.positions.all(source.database)
        found = [known[name] for name in names if name in known]
        if len(found) == len(names) and all(each.position >= goal for each in found):
            return True
        stopped = any(each.failure is not None for each in found)
        if stopped or time.monotonic() + step_s > deadline:
            return False
        if step_s == STEP_MIN_S:
            source.log.hurry()
        with blocking():
            pause.wait(step_s)
        step_s = min(2 * step_s, STEP_MAX_S)


def require_projected(source: Source, *names: str) -> None:
    """Raise ServiceUnavailable if these do not have what the log has, within a second."""
    if not wait_until_projected(source, names, wait_s=1.0):
        raise ServiceUnavailable("The lists do not have what is newest yet; try again.")


class Freshness:
    """Tells how old read models are; looks once a second, not at each request."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: Mapping[str, Position] = {}
        self._refreshed_at = float("-inf")

    def is_stale(self, name: str) -> tuple[bool, datetime | None]:
        """Return whether a read model has been behind for long, and when it was last up to date."""
        if time.monotonic() >= self._refreshed_at + REFRESH_S:
            self._known = self._source.positions.all(self._source.database)
            self._refreshed_at = time.monotonic()
        position = self._known.get(name)
        if position is None:
            return True, None
        as_of = position.caught_up_at
        # The clock of the projector's process may be ahead a little.
        if as_of is not None and abs(self._source.clock() - as_of) <= STALE:
            return False, as_of
        return position.position < self._source.log.head(), as_of
