"""Worker threads that sleep until there is a message, and end at once when told to."""

from queue import Empty, PriorityQueue
from typing import Any

from dramatiq import Broker, Worker

# Time-out of a queue's consumer: how late it notices its end, or that a delayed message is due.
LOOK_MS = 1_000


class WaitingWorker(Worker):
    """Dramatiq's worker, but with idle threads that sleep; Dramatiq's look ten times a second."""

    def __init__(self, broker: Broker, queue: str, threads: int) -> None:
        super().__init__(broker, queues={queue}, worker_threads=threads, worker_timeout=LOOK_MS)
        self._messages = self.work_queue = Messages()

    def stop(self, timeout: int = 600_000) -> None:
        """Stop when the work in hand is done."""
        self._messages.end()
        super().stop(timeout)


class Messages(PriorityQueue[Any]):
    """A queue of messages that wakes its readers for a message, and at the end."""

    _has_ended = False

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: ARG002, FBT001, FBT002  # The signature is the library's.
        """Return the next message, however long that takes; raises Empty at the end."""
        with self.not_empty:
            if block:
                self.not_empty.wait_for(lambda: self._qsize() or self._has_ended)
            if not self._qsize():
                raise Empty
            return self._get()

    def end(self) -> None:
        """Wake all readers, because there will be no more messages."""
        with self.not_empty:
            self._has_ended = True
            self.not_empty.notify_all()
