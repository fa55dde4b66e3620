"""The dispatcher follows the log and publishes what events ask for, at least once.

Which event asks for which message stands in `workers/routes.py`.
"""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from domain.aggregates import topics_but
from domain.cause import Clock, utc_now
from domain.log.aggregate import Event
from domain.log.log import Log, Place, Poisoned, Stretch
from projections.engine.database import Database
from projections.engine.positions import Fenced, Position, Positions, belongs
from workers.routes import ROUTES, Publisher, messages_for

NAME = "dispatcher"
VERSION = 1
BATCH_EVENTS_MAX = 200  # Limits what is published twice after a crash in the middle of a batch.

# Most events ask for no work. If the position moved with each of them, each would cost a write; if
# it never did, all of them would be read again after a crash.
MOVE_S = 0.25
LOOK_S = 1.0  # How long an idle dispatcher trusts its position in memory.
UNUSED = topics_but(ROUTES)

logger = logging.getLogger(__name__)


class Dispatcher:
    """Publishes first, then moves its position; a message may come twice, but is never lost.

    While there is work the position is kept in memory; if another process moves it, the next write
    fails with Fenced. Without a position in this log the dispatcher starts at the head and asks for
    a sweep, so it never publishes the whole log again.
    """

    def __init__(  # noqa: PLR0913  # It stands between the log and the queue.
        self,
        log: Log,
        database: Database,
        positions: Positions,
        publisher: Publisher,
        sweep: Callable[[], object],
        clock: Clock = utc_now,
        around: Callable[[Event], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`around` is entered while the messages of an event are published."""
        self._log = log
        self._database = database
        self._positions = positions
        self._publisher = publisher
        self._sweep = sweep
        self._clock = clock
        self._around = around
        self._started = False
        self._place: Position | None = None  # As it is stored; None: read it first.
        self._passed: Place | None = None  # The last event that need not be looked at again.
        self._moved_at = self._looked_at = 0.0

    def step(self) -> int:
        """Publish what the next batch asks for; return how many events it holds."""
        place = self._place or self._find_place()
        stretch = self._read(place)
        if stretch.last is None:
            self._move(place)
            if time.monotonic() > self._looked_at + LOOK_S:
                self._place = None  # Others may have moved or dropped it.
            return 0
        published = sum(self._publish(recorded.event) for recorded in stretch.events)
        self._passed = stretch.last
        if published or time.monotonic() > self._moved_at + MOVE_S:
            self._move(place)
        return stretch.count

    def _publish(self, event: Event) -> int:
        """Publish what an event asks for; return how many messages that is."""
        messages = [*messages_for(event)]
        if messages:
            with self._around(event):
                for message in messages:
                    self._publisher.publish(message)
        return len(messages)

    def _find_place(self) -> Position:
        """Read the position; if there is none in this log, start at the head."""
        self._passed = None
        if not self._started:
            self._start()
            self._started = True
        with self._database.reading() as connection:
            place = self._positions.get(connection, NAME)
        if place is None:  # It was dropped since.
            self._start()
            return self._find_place()
        self._place, self._looked_at = place, time.monotonic()
        return place

    def _move(self, place: Position) -> None:
        """Store the position of the last passed event; after a lost race read it again."""
        passed = self._passed
        if passed is None or passed.position == place.position:
            return
        try:
            with self._database.writing() as connection:
                self._positions.advance(connection, [place], passed)
        except Fenced:
            logger.info("another dispatcher is at work")
            self._place = None
            return
        self._place = place._replace(position=passed.position)
        self._moved_at = time.monotonic()

    def _read(self, place: Position) -> Stretch:
        try:
            after = self._passed.position if self._passed is not None else place.position
            return self._log.follow(after, BATCH_EVENTS_MAX, UNUSED)
        except Poisoned as error:
            self._move(place)
            place = self._place or place
            with self._database.writing() as connection:
                self._positions.fail(connection, place, str(error), self._clock())
            raise

    def _start(self) -> None:
        with self._database.reading() as connection:
            place = self._positions.get(connection, NAME)
        if place is not None and belongs(self._log, place):
            return
        head = self._log.head()
        last = self._log.follow(head - 1, 1, UNUSED).last if head else None
        if head:
            logger.warning("the dispatcher starts at position %d and sweeps", head)
        self._sweep()  # First, because a failed sweep would not be repeated.
        with self._database.writing() as connection:
            self._positions.begin(connection, NAME, VERSION, last)
