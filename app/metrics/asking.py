"""Asks databases and brokers that may be away: each in a thread of its own, all within a bound."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Generic, TypeVar

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

ANSWER_S = 1.5  # For all questions of one scrape together, which may take 2 s.

T = TypeVar("T")


class Asker(Generic[T]):
    """One question. While an earlier one hangs, no second is begun: all wait for that answer.

    The thread stays, because connections belong to the thread that opened them.
    """

    def __init__(self, name: str, ask: Callable[[], T]) -> None:
        self.name = name
        self._ask = ask
        self._lock = Lock()
        self._asked: SimpleQueue[Future[T]] = SimpleQueue()
        self._pending: Future[T] | None = None
        self._thread: Thread | None = None

    def begin(self) -> "Future[T]":
        """Ask, or join those who have asked and wait."""
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._run, name=f"asks {self.name}", daemon=True)
                self._thread.start()
            if self._pending is None or self._pending.done():
                self._pending = Future()
                self._asked.put(self._pending)
            return self._pending

    def _run(self) -> None:
        while True:
            future = self._asked.get()
            try:
                future.set_result(self._ask())
            except BaseException as error:  # noqa: BLE001  # Whatever it is, it is the answer.
                future.set_exception(error)


class Asking(Collector):
    """Asks at each scrape; what cannot be asked in time is left out, and said to be."""

    def __init__(self, askers: list[Asker[list[Metric]]]) -> None:
        self._askers = askers

    def describe(self) -> list[Metric]:
        """Say nothing at registration, so that nothing is asked then."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield what stands now."""
        reached = GaugeMetricFamily(
            "scrape_part_reached",
            "0 when this part could not be asked at this scrape.",
            labels=["part"],
        )
        deadline = time.monotonic() + ANSWER_S
        begun = [(asker.name, asker.begin()) for asker in self._askers]
        for name, future in begun:
            families = answer_of(future, deadline)
            reached.add_metric([name], float(families is not None))
            yield from families or ()
        yield reached


def answer_of(future: "Future[T]", deadline: float) -> T | None:
    """Return an answer, or None when there is none by a moment of the monotonic clock."""
    try:
        return future.result(max(0.0, deadline - time.monotonic()))
    except Exception:  # noqa: BLE001  # A scrape must not fail with the database.
        return None
