"""Requests that wait for an outcome in the log: how they wait, and how many of them may."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter
from threading import Event
from typing import TypeVar

from domain.blocking import blocking
from domain.limiter import Limiter, share_of
from domain.log.aggregate import Root
from domain.log.log import Log

SHARE = "Too many requests of this organization wait for the network; try again."
FULL = "Too many requests wait for the network; try again."
# A waiter that is not woken reads the log after this time, then after twice as long each time. On
# SQLite the commits of other processes wake nobody; on PostgreSQL the notification may get lost.
POLL_MIN_S = 0.1
POLL_MAX_S = 1.0
IS_ANSWERED = attrgetter("is_answered")  # Of a link or plan change: its sender can be told.

Limiters = Mapping[str, Limiter]  # Of requests that wait, for each network.

R = TypeVar("R", bound=Root)


def limiters_of(
    total: int, shown: Callable[[], AbstractContextManager[object]] = nullcontext
) -> Limiters:
    """Return so many places for each network, so that one that hangs takes none from the others.

    Whoever holds a place holds a thread of the server.
    """
    share = share_of(total)
    return defaultdict(lambda: Limiter(total, share, beyond_share=SHARE, full=FULL, shown=shown))


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
    poll_s = POLL_MIN_S
    while True:
        with blocking():
            is_news = news.wait(max(0.0, min(poll_s, until_s - time.monotonic())))
        if not is_news:
            poll_s = min(2 * poll_s, POLL_MAX_S)
        news.clear()
        newest = log.find(type(aggregate), aggregate.id, after=aggregate)
        assert newest is not None, aggregate.id
        aggregate = newest
        if done(aggregate) or time.monotonic() >= until_s:
            return aggregate
