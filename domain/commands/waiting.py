"""Requests that wait for an outcome on the log: how they wait, and how many of them may."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import TypeVar
from uuid import UUID

from domain.aggregate import Root
from domain.application import Log
from domain.errors import ServiceUnavailable

LOOK_S = 0.05  # How often a waiter looks when nothing wakes it, as on SQLite for other processes.

R = TypeVar("R", bound=Root)


class Waiting:
    """Places for requests that wait; beyond them a caller is told to come back at once.

    A request that waits holds a thread of the server, and those of all others must not wait for it.
    """

    def __init__(self, places: int) -> None:
        self._places = BoundedSemaphore(places)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place; raises ServiceUnavailable when there is none."""
        if not self._places.acquire(blocking=False):
            message = "Too many requests wait for the network; try again."
            raise ServiceUnavailable(message)
        try:
            yield
        finally:
            self._places.release()


def wait_for(
    log: Log, kind: type[R], stream_id: UUID, done: Callable[[R], bool], until_s: float
) -> R:
    """Return an aggregate once it is `done`, or as it is at `until_s` of the monotonic clock."""
    aggregate: R | None = None
    with log.appended.watching(stream_id) as news:
        while True:
            news.clear()
            aggregate = log.find(kind, stream_id, after=aggregate)
            assert aggregate is not None, stream_id
            left_s = until_s - time.monotonic()
            if done(aggregate) or left_s <= 0:
                return aggregate
            news.wait(min(LOOK_S, left_s))
