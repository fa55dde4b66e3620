"""A walk through the log: the events of some kinds, one by one, in bounded memory."""

from collections.abc import Iterator

from domain.aggregates import topics_but
from domain.log.log import Log, Recorded
from projections.engine.read_model import Uses
from projections.engine.rebuild import Progress, ignore_progress

BATCH_EVENTS_MAX = 2_000


def walk(
    log: Log, uses: Uses, progress: Progress = ignore_progress, until: int | None = None
) -> Iterator[Recorded]:
    """Yield the events of these kinds up to a position, or up to the present head.

    Raises Poisoned at an event that cannot be decoded.
    """
    unused, after, head = topics_but(uses), 0, log.head()
    goal = head if until is None else min(until, head)
    while after < goal:
        stretch = log.follow(after, BATCH_EVENTS_MAX, unused, until=goal)
        yield from stretch.events
        if stretch.last is None:
            return
        after = stretch.last.position
        progress(after, goal)
