"""Requests that wait for an outcome in the log: how they wait, and how many of them may."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Lock
from typing import TypeVar
from uuid import UUID

from domain.errors import RateLimited, ServiceUnavailable
from domain.log.aggregate import Root
from domain.log.log import Log

SHARE = "Too many requests of this organization wait for the network; try again."
# A waiter that nothing wakes looks after this time, and then after twice as long each time. On
# SQLite the commits of other processes wake nobody, and a listening connection may be deaf.
LOOK_MIN_S = 0.1
LOOK_MAX_S = 1.0

R = TypeVar("R", bound=Root)


def share_of(total: int) -> int:
    """Return how many of these places or threads one organization may hold: half of them."""
    return max(1, total // 2)


class Waiting:
    """Places for waiting requests; when they are taken, callers are refused at once.

    A waiting request holds a thread of the server, and other requests must not wait for it. One
    organization has only a share of the places, so that others find one. `shown` is entered while a
    place is held.
    """

    def __init__(
        self, places: int, shown: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> None:
        self._places = places
        self._shown = shown
        self._share = share_of(places)
        self._holding: Counter[UUID] = Counter()
        self._lock = Lock()

    def require_share(self, organization_id: UUID) -> None:
        """Raise RateLimited if the organization holds its whole share now."""
        if self._holding[organization_id] >= self._share:
            raise RateLimited(SHARE)

    @contextmanager
    def place(self, organization_id: UUID) -> Iterator[None]:
        """Hold a place; raises RateLimited beyond the share, ServiceUnavailable if all are taken.

        A request that is refused has started nothing.
        """
        with self._lock:
            self.require_share(organization_id)
            if self._holding.total() >= self._places:
                message = "Too many requests wait for the network; try again."
                raise ServiceUnavailable(message)
            self._holding[organization_id] += 1
        try:
            with self._shown():
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

    `news` must watch its stream since before it was appended or read. Until it is set, the given
    state is the newest, and the log is not read.
    """
    if news is None:
        with log.appended.watching(aggregate.id) as watched:
            watched.set()  # By what happened before anybody watched.
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
