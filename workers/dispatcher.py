"""The dispatcher: it follows the log and publishes what events ask for, at least once."""

import logging
from collections.abc import Callable

from domain.application import Log, Poisoned, Recorded
from domain.cause import Clock, utc_now
from projections.database import Database
from projections.health import belongs
from projections.positions import Fenced, Position, Positions
from workers.publisher import Publisher
from workers.routes import messages_for

NAME = "dispatcher"
VERSION = 1
BATCH_EVENTS_MAX = 200  # Bounds what is published twice after a crash in the midst of a batch.

logger = logging.getLogger(__name__)


class Dispatcher:
    """Publishes first, moves its position after; a message may come twice, never not at all.

    Without a position of this log it starts at the head and asks for a sweep: it never sends the
    whole log again.
    """

    def __init__(  # noqa: PLR0913  # It stands between the log and the queue.
        self,
        log: Log,
        database: Database,
        positions: Positions,
        publisher: Publisher,
        sweep: Callable[[], object],
        clock: Clock = utc_now,
    ) -> None:
        self._log = log
        self._database = database
        self._positions = positions
        self._publisher = publisher
        self._sweep = sweep
        self._clock = clock
        self._started = False

    def step(self) -> bool:
        """Publish what the next batch asks for; True when there may be more."""
        if not self._started:
            self._start()
            self._started = True
        with self._database.reading() as connection:
            place = self._positions.get(connection, NAME)
        if place is None:
            self._started = False
            return True
        batch = self._read(place)
        if not batch:
            return False
        for recorded in batch:
            for message in messages_for(recorded.event):
                self._publisher.publish(message)
        try:
            with self._database.writing() as connection:
                self._positions.advance(connection, NAME, place.position, batch[-1])
        except Fenced:
            logger.info("another dispatcher is at work")
        return True

    def _read(self, place: Position) -> list[Recorded]:
        try:
            return self._log.read(place.position, BATCH_EVENTS_MAX)
        except Poisoned as error:
            with self._database.writing() as connection:
                self._positions.fail(connection, place, str(error), self._clock())
            raise

    def _start(self) -> None:
        with self._database.reading() as connection:
            place = self._positions.get(connection, NAME)
        if place is not None and belongs(self._log, place):
            return
        head = self._log.head()
        last = self._log.read(head - 1, 1) if head else []
        with self._database.writing() as connection:
            self._positions.begin(connection, NAME, VERSION, last[0] if last else None)
        if head:
            logger.warning("the dispatcher starts at position %d and sweeps", head)
        self._sweep()
