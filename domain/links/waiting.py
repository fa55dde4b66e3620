"""Requests that wait for an outcome in the log: how they wait, and how many of them may."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from threading import Event
from typing import TypeVar
from uuid import UUID

from domain.at_once import resting
from domain.limiter import Limiter, share_of
from domain.log.aggregate import Root
from domain.log.log import Log

SHARE = "Too many requests of this organization wait for the network; try again."
FULL = "Too many requests wait for the network; try again."
# A waiter that is not woken reads the log after this time, then after twice as long each time. On
# SQLite the commits of other processes wake nobody; on PostgreSQL the notification may get lost.
LOOK_MIN_S = 0.1
LOOK_MAX_S = 1.0

R = TypeVar("R", bound=Root)


class Waiting:
    """Places for requests that wait for a network, each with a thread of the server.

    The networks share them equally, so that a network that hangs takes no place from the others.
    """

    def __init__(
        self,
        places: int,
        shown: Callable[[], AbstractContextManager[object]] = nullcontext,
        networks: int = 1,
    ) -> None:
        self._places = places // networks
        self._shown = shown
        self._of: dict[str, Limiter] = {}

    def require_share(self, organization_id: UUID, network: str) -> None:
        """Raise RateLimited if the organization holds its whole share at a network now."""
        self._at(network).require_share(organization_id)

    def place(self, organization_id: UUID, network: str) -> AbstractContextManager[None]:
        """Hold a place; raises RateLimited beyond the share, ServiceUnavailable if all are taken.

        A request that is refused has started nothing.
        """
        return self._at(network).slot(organization_id)

    def _at(self, network: str) -> Limiter:
        share = share_of(self._places)
        new = Limiter(self._places, share, beyond_share=SHARE, full=FULL, shown=self._shown)
        return self._of.setdefault(network, new)


def wait_for(
    log: Log, aggregate: R, done: Callable[[R], bool], until_s: float, news: Event | None = None
) -> R:
    """Return an aggregate once it is `done`, or as it is at `until_s` of the monotonic clock.

    `news` must watch its stream since before it was appended or read. Until it is set, the given
    state is the newest, and the log is not read.
    """
    if news is None:
        with log.appended.watching(aggregate.id) as watched:
            watched.set()  # The stream may have grown before the watch began.
            return wait_for(log, aggregate, done, until_s, watched)
    look_s = LOOK_MIN_S
    while True:
        with resting():
            is_news = news.wait(max(0.0, min(look_s, until_s - time.monotonic())))
        if not is_news:
            look_s = min(2 * look_s, LOOK_MAX_S)
        news.clear()
        newest = log.find(type(aggregate), aggregate.id, after=aggregate)
        assert newest is not None, aggregate.id
        aggregate = newest
        if done(aggregate) or time.monotonic() >= until_s:
            return aggregate
