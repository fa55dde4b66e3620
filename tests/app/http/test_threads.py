"""Threads beside the loop: few compute at once, and those that wait keep nobody from beginning."""

import asyncio
import time
from collections.abc import Iterator
from threading import Event, Lock, Thread, get_ident

import pytest

from app.http import threads
from app.http.threads import COMPUTING_MAX, Threads
from app.settings import HTTP_THREADS
from tests.servers.guard import wait_for

PATIENCE_S = 20.0
LOOKS = 5


class Calls:
    """Calls that end when they are told, and how many of them run."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.threads = Threads(Calls._run)
        self.running = self.ended = self.looks = 0
        self._lock, self._go_on = Lock(), Event()
        self._thread = Thread(target=self.loop.run_forever)
        self._thread.start()

    def submit(self, count: int) -> None:
        for _ in range(count):
            self.loop.call_soon_threadsafe(self.threads.submit, self, self.loop)

    def finish(self, count: int) -> None:
        """Let all end that have begun and will begin, and wait for so many."""
        self._go_on.set()
        assert wait_for(lambda: self.ended == count, PATIENCE_S)
        self._go_on.clear()
        self.ended = 0

    def close(self) -> None:
        self._go_on.set()
        self.threads.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()

    def _run(self) -> None:
        with self._lock:
            self.running += 1
        assert self._go_on.wait(PATIENCE_S)
        with self._lock:
            self.running -= 1
            self.ended += 1


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    made = Calls()
    look = threads.Threads._look  # noqa: SLF001  # The test counts the looks.

    def noted(self: Threads[Calls], loop: asyncio.AbstractEventLoop) -> None:
        look(self, loop)
        made.looks += 1

    monkeypatch.setattr(threads.Threads, "_look", noted)
    yield made
    made.close()


def test_one_more_begins_for_each_that_waits(calls: Calls) -> None:
    calls.submit(HTTP_THREADS + 1)
    assert wait_for(lambda: calls.running == HTTP_THREADS, PATIENCE_S)
    assert calls.threads.waiting == 1
    calls.finish(HTTP_THREADS + 1)


def test_of_those_that_compute_only_a_few_run(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = 3 * COMPUTING_MAX
    calls.submit(waited)
    assert wait_for(lambda: calls.running == waited, PATIENCE_S)
    calls.finish(waited)
    monkeypatch.setattr(threads._Worker, "waits", lambda _: False)  # noqa: SLF001  # As if all computed.
    # Those that were let in while others waited are taken back, each at the end of its call.
    calls.submit(waited + 1)
    looks = calls.looks
    assert wait_for(lambda: calls.looks > looks, PATIENCE_S)
    calls.finish(waited + 1)
    calls.submit(waited)
    looks = calls.looks
    assert wait_for(lambda: calls.looks >= looks + LOOKS, PATIENCE_S)
    assert calls.running == COMPUTING_MAX
    calls.finish(waited)


def test_a_thread_waits_while_its_processor_time_stands_still() -> None:
    workers, stop, go_on = list[threads._Worker](), Event(), Event()  # noqa: SLF001  # Of this test.

    def work() -> None:
        clock = time.pthread_getcpuclockid(get_ident())
        workers.append(threads._Worker(clock, is_busy=True))  # noqa: SLF001  # As above.
        while not stop.is_set():
            pass
        assert go_on.wait(PATIENCE_S)

    thread = Thread(target=work)
    thread.start()
    assert wait_for(lambda: bool(workers), PATIENCE_S)
    [worker] = workers
    spent_s = worker.spent_s
    assert wait_for(lambda: not worker.waits() and worker.spent_s > spent_s, PATIENCE_S)
    stop.set()
    assert wait_for(worker.waits, PATIENCE_S)
    worker.is_busy = False
    assert not worker.waits(), "it has nothing to do"
    go_on.set()
    thread.join(PATIENCE_S)
