"""Threads beside the loop: few compute at once, and those that rest keep nobody from beginning."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from threading import Event, Lock

import pytest

from app.http.server import threads
from app.http.server.threads import BLOCKED_MAX, COMPUTING_MAX, Threads
from app.settings import HTTP_THREADS
from domain.blocking import blocking
from domain.errors import RateLimited, ServiceUnavailable
from domain.limiter import share_of
from tests.servers.guard import wait_for

PATIENCE_S = 20.0
QUARTER = COMPUTING_MAX // 4


class Calls:
    """Calls that end when they are told, and how many of each owner run."""

    def __init__(self) -> None:
        self.threads = Threads()
        self.running = Counter[str]()
        self.ended = 0
        self._lock, self._go_on = Lock(), Event()

    def submit(self, owner: str, count: int, *, rest: bool = False) -> None:
        for _ in range(count):
            self.threads.submit(owner, partial(self._run, owner, rest=rest))

    def until(self, **running: int) -> None:
        assert wait_for(lambda: +self.running.copy() == running, PATIENCE_S), self.running

    def finish(self) -> None:
        self._go_on.set()

    def close(self) -> None:
        self.finish()
        self.threads.stop()

    def _run(self, owner: str, *, rest: bool) -> None:
        with self._lock:
            self.running[owner] += 1
        if rest:
            with suppress(ZeroDivisionError), blocking():
                assert self._go_on.wait(PATIENCE_S)
                raise ZeroDivisionError  # What is raised at rest is that of the call.
        assert self._go_on.wait(PATIENCE_S)
        with self._lock:
            self.running[owner] -= 1
            self.ended += 1


@pytest.fixture
def calls() -> Iterator[Calls]:
    made = Calls()
    yield made
    made.close()


def test_few_compute_in_all(calls: Calls) -> None:
    for number in range(COMPUTING_MAX + 3):
        calls.submit(f"owner-{number}", 1)
    assert wait_for(lambda: calls.running.total() == COMPUTING_MAX, PATIENCE_S)
    calls.finish()
    assert wait_for(lambda: calls.ended == COMPUTING_MAX + 3, PATIENCE_S)


def test_who_rests_lets_others_begin_and_takes_half_of_the_threads_for_it(calls: Calls) -> None:
    half = share_of(BLOCKED_MAX)
    calls.submit("other", 1)
    calls.submit("crowd", HTTP_THREADS, rest=True)
    calls.until(other=1, crowd=half + QUARTER)
    calls.submit("second", HTTP_THREADS, rest=True)
    calls.until(other=1, crowd=half + QUARTER, second=half + QUARTER)
    calls.submit("quiet", 1)
    calls.until(other=1, crowd=half + QUARTER, second=half + QUARTER, quiet=1)
    calls.finish()
    assert wait_for(lambda: calls.ended == 2 * HTTP_THREADS + 2, PATIENCE_S)


def test_who_came_alone_and_waits_everywhere_leaves_slots_to_the_next(calls: Calls) -> None:
    calls.submit("crowd", HTTP_THREADS, rest=True)
    calls.until(crowd=share_of(BLOCKED_MAX) + threads.ALONE_MAX)
    calls.submit("quiet", QUARTER)
    calls.until(crowd=share_of(BLOCKED_MAX) + threads.ALONE_MAX, quiet=QUARTER)


def test_more_than_may_wait_are_refused_first_the_one_who_sends_them(calls: Calls) -> None:
    half = share_of(threads.WAITING_MAX)
    calls.submit("other", 1)
    calls.submit("crowd", QUARTER + half)
    with pytest.raises(RateLimited):
        calls.submit("crowd", 1)
    calls.submit("second", QUARTER + half)
    with pytest.raises(ServiceUnavailable):
        calls.submit("third", 2 * COMPUTING_MAX)
