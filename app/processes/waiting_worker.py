"""Threads that wait for messages without looking up, and end at once when they are told to."""

from queue import Empty, PriorityQueue
from typing import Any

from dramatiq import Broker, Worker

# Of what consumes a queue: how late it notices that it should end, and a delayed message its time.
LOOK_MS = 1_000


class WaitingWorker(Worker):
    """Dramatiq's worker, whose idle threads cost nothing: fifty that look ten times a second do."""

    def __init__(self, broker: Broker, queue: str, threads: int) -> None:
        super().__init__(broker, queues={queue}, worker_threads=threads, worker_timeout=LOOK_MS)
        self._messages = self.work_queue = Messages()

    def stop(self, timeout: int = 600_000) -> None:
        """End when what is in hand is done."""
        self._messages.end()
        super().stop(timeout)


class Messages(PriorityQueue[Any]):
    """Wakes whoever waits when there is a message, or no more are to be worked on."""

    _has_ended = False

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: ARG002, FBT001, FBT002  # Of the library.
        """Return the next message, raise Empty at the end; a thread that is idle has all day."""
        with self.not_empty:
            if block:
                self.not_empty.wait_for(lambda: self._qsize() or self._has_ended)
            if not self._qsize():
                raise Empty
            return self._get()

    def end(self) -> None:
        """Let nobody wait any more."""
        with self.not_empty:
            self._has_ended = True
            self.not_empty.notify_all()
