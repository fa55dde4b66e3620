"""The threads beside the loop: few compute at once, and as many as there are may wait.

Threads that all compute only hand the interpreter to each other: with 80 of them 64 readers cost
twice the processor time, and wait three times as long, as with 16 (docs/speed.md).
"""

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock, Thread, get_ident
from typing import Generic, TypeVar

from app.settings import HTTP_THREADS

COMPUTING_MAX = 16
# How often it is looked who waits, while calls queue. Among so many threads each that computes has
# its turn several times meanwhile.
LOOK_S = 0.04

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Worker:
    """A thread: the clock of its processor time, and what that showed at the last look."""

    clock: int
    is_busy: bool = False
    spent_s: float = 0.0

    def waits(self) -> bool:
        """Tell whether it has stood still since the last look: it waits for somebody."""
        before_s, self.spent_s = self.spent_s, time.clock_gettime(self.clock)
        return self.is_busy and self.spent_s == before_s


class Threads(Generic[T]):
    """Runs calls in the order in which they came; a thread needs a permit to take one."""

    def __init__(self, run: Callable[[T], object]) -> None:
        self._run = run
        self._queue: SimpleQueue[T | None] = SimpleQueue()
        self._permits: SimpleQueue[None] = SimpleQueue()
        self._workers: list[_Worker] = []
        self._lock = Lock()
        self._permitted = self._wanted = COMPUTING_MAX  # How many may be busy; how many should be.
        self._open = 0  # Calls that have not ended.
        self._is_looking = False  # Only the loop sets it.
        for _ in range(COMPUTING_MAX):
            self._permits.put(None)
        for number in range(HTTP_THREADS):
            Thread(target=self._work, name=f"http-{number}", daemon=True).start()

    @property
    def waiting(self) -> int:
        """The number of calls for which there was no thread yet."""
        return self._queue.qsize()

    def submit(self, call: T, loop: AbstractEventLoop) -> None:
        """Have a call run; called on the loop."""
        self._queue.put(call)
        with self._lock:
            self._open += 1
            queues = self._open > self._permitted
        if queues and not self._is_looking:
            self._is_looking = True
            loop.call_later(LOOK_S, self._look, loop)

    def stop(self) -> None:
        """End the threads, each after its present call."""
        for _ in range(HTTP_THREADS):
            self._queue.put(None)
            self._permits.put(None)

    def _look(self, loop: AbstractEventLoop) -> None:
        """Let one more thread begin for each that waits, as long as calls queue."""
        waiting = sum(each.waits() for each in self._workers)
        self._is_looking = not self._queue.empty()
        if not self._is_looking:
            return
        loop.call_later(LOOK_S, self._look, loop)
        with self._lock:
            self._wanted = min(COMPUTING_MAX + waiting, HTTP_THREADS)
            more = max(self._wanted - self._permitted, 0)
            self._permitted += more
        for _ in range(more):
            self._permits.put(None)

    def _work(self) -> None:
        this = _Worker(time.pthread_getcpuclockid(get_ident()))
        self._workers.append(this)
        while True:
            self._permits.get()
            call = self._queue.get()
            if call is None:
                self._workers.remove(this)
                return
            this.is_busy = True
            self._run(call)
            this.is_busy = False
            del call  # A waiting thread must not keep its last request in memory.
            with self._lock:
                self._open -= 1
                is_needed = self._permitted <= self._wanted
                self._permitted -= not is_needed
            if is_needed:
                self._permits.put(None)
