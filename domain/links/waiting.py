"""Requests that wait for an outcome on the log: how they wait, and how many of them may."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock
from typing import TypeVar
from uuid import UUID

from domain.errors import RateLimited, ServiceUnavailable
from domain.log.aggregate import Root
from domain.log.log import Log

SHARE = "Too many requests of this organization wait for the network; try again."
# A waiter that nothing wakes looks after so long, and then after twice as long each time: on SQLite
# the commits of other processes wake nobody, and a connection that listens may be deaf.
LOOK_MIN_S = 0.1
LOOK_MAX_S = 1.0

R = TypeVar("R", bound=Root)


def share_of(total: int) -> int:
    """Return how many of so many places or threads one organization may hold: half of them."""
    return max(1, total // 2)


class Waiting:
    """Places for requests that wait; beyond them a caller is told to come back at once.

    A request that waits holds a thread of the server, and those of all others must not wait for it.
    One organization has a share of the places, so that the others find one.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._share = share_of(places)
        self._holding: Counter[UUID] = Counter()
        self._lock = Lock()

    def require_share(self, organization_id: UUID) -> None:
        """Raise RateLimited for an organization that holds its share now."""
        if self._holding[organization_id] >= self._share:
            raise RateLimited(SHARE)

    @contextmanager
    def place(self, organization_id: UUID) -> Iterator[None]:
        """Hold a place; raises RateLimited beyond the share, ServiceUnavailable when all are taken.

        Whoever is refused has begun nothing.
        """
        with self._lock:
            self.require_share(organization_id)
            if self._holding.total() >= self._places:
                message = "Too many requests wait for the network; try again."
                raise ServiceUnavailable(message)
            self._holding[organization_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._holding[organization_id] -= 1
                if not self._holding[organization_id]:
                    del self._holding[organization_id]


def wait_for(
    log: Log, aggregate: R, done: Callable[[R], bool], until_s: float, news: Event | None = None
) -> R:
    """Return an aggregate once it is `done`, or as it is at `until_s` of the monotonic clock.

    `news` has watched its stream since before it was appended or read: until there is some, what
    is given is the newest, and nobody looks.
    """
    if news is None:
        with log.appended.watching(aggregate.id) as watched:
            watched.set()  # By what came before anybody watched.
            return wait_for(log, aggregate, done, until_s, watched)
    look_s = LOOK_MIN_S
    while True:
        if not news.wait(max(0.0, min(look_s, until_s - time.monotonic()))):
            look_s = min(2 * look_s, LOOK_MAX_S)
        news.clear()
        newest = log.find(type(aggregate), aggregate.id, after=aggregate)
        assert newest is not None, aggregate.id
        aggregate = newest
        if done(aggregate) or time.monotonic() >= until_s:
            return aggregate
