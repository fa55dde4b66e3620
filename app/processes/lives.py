"""The one loop that begins anew: a container lives with one server of the database.

When another server answers (a failover), or events that were read are gone, everything that this
process remembers of the log may be wrong. Nothing of it is corrected. The process builds another
container, which records a loss in the log, and lets it take the place of the old one, which ends.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

from app.bootstrap.container import Container
from projections.engine.complaint import Complaint

POLL_S = 1.0
AGAIN_S = 1.0  # Between two tries, while the new server takes no writes yet.

# Begins the work of a container in this process; returns what ends it.
Start = Callable[[Container], Callable[[], object]]

logger = logging.getLogger(__name__)


class Lives:
    """The container of this process, and what works with it."""

    def __init__(self, container: Container) -> None:
        self.now = container
        self._starts: list[Start] = []
        self._ends: list[Callable[[], object]] = []
        self._stop = Event()
        self._thread = Thread(target=self._watch, name="lives", daemon=True)

    def start(self, *starts: Start) -> None:
        """Begin work, now and with each container to come."""
        self._starts = [*starts]
        self._ends = [start(self.now) for start in starts]
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        _end(self.now, self._ends)

    def _watch(self) -> None:
        while not self._stop.wait(POLL_S):
            if self.now.log.is_over:
                self._restart()

    def _restart(self) -> None:
        started_s, old, ends = time.monotonic(), self.now, self._ends
        logger.warning("another server of the database answers: this process begins anew")
        trouble = Complaint("beginning anew")
        while not self._stop.is_set():
            following, started = old.anew(), list[Callable[[], object]]()
            try:
                following.log.record_loss(old.log.seen)
                following.complete()
                for start in self._starts:
                    started.append(start(following))
            # Whatever the error, or this process would answer nothing any more.
            except Exception as error:  # noqa: BLE001  # As above.
                trouble.of(error)
                with suppress(Exception):
                    _end(following, started)
                self._stop.wait(AGAIN_S)
            else:
                self.now, self._ends = following, started
                logger.warning("began anew after %.1f s", time.monotonic() - started_s)
                # Threads that wait for the old server end late, and nobody waits for them.
                Thread(target=_end, args=(old, ends), name="end of the old life").start()
                return


def _end(container: Container, ends: list[Callable[[], object]]) -> None:
    try:
        for end in ends:
            end()
    finally:
        if not container.is_closed:
            container.close()
