"""The one reader of the log for what keeps no position: events or rows, in bounded memory."""

from collections.abc import Iterator

from domain.aggregates import topics_but
from domain.log.log import Log, Recorded, Stored
from projections.engine.read_model import BATCH_EVENTS_MAX, Uses
from projections.engine.rebuild import Progress, ignore_progress


def read_events(
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


def read_rows(
    log: Log, after: int, until: int, progress: Progress = ignore_progress
) -> Iterator[Stored]:
    """Yield the rows after a position and up to another, as they are stored.

    Raises Poisoned for a row whose stream has no proper id.
    """
    while after < until and (rows := log.stored(after, BATCH_EVENTS_MAX)):
        yield from (row for row in rows if row.position <= until)
        after = rows[-1].position
        progress(min(after, until), until)
