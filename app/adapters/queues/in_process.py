"""The broker inside this process, for an installation of one: its queues die with it."""

from collections import defaultdict, deque
from queue import Queue
from typing import Any

from dramatiq import Broker, Consumer, Worker
from dramatiq.brokers.stub import StubBroker
from dramatiq.common import dq_name
from dramatiq.middleware import Middleware, Retries

LOOK_MS = 200  # While there is work: how late a message is that waits for its time.


class InProcessBroker(StubBroker):
    """Dramatiq's own in-process broker, without what raises inside threads.

    TimeLimit and ShutdownNotifications are left out: every call has its own time-out. Dead
    letters are not kept: nobody reads them, and the sweep asks again for what was not done.
    """

    given_up = None

    def __init__(self) -> None:
        super().__init__(middleware=[Retries(), _Ending()])
        # Each queue has a worker of its own, and each worker brings its middleware.
        self.logger.addFilter(lambda record: "of the same type twice" not in record.msg)
        self.dead_letters_by_queue = defaultdict(_nothing_kept)

    def declare_queue(self, queue_name: str) -> None:
        """Make a queue and the one of its messages that wait for their time."""
        if queue_name in self.queues:
            return
        self.emit_before("declare_queue", queue_name)
        self.queues[queue_name] = Waking()
        self.emit_after("declare_queue", queue_name)
        delayed_name = dq_name(queue_name)
        self.queues[delayed_name] = Waking()
        self.delay_queues.add(delayed_name)
        self.emit_after("declare_delay_queue", delayed_name)

    def consume(
        self,
        queue_name: str,
        prefetch: int = 1,
        timeout: int = LOOK_MS,  # noqa: ARG002  # Of the port.
    ) -> Consumer:
        """Consume a queue of this process."""
        return super().consume(queue_name, prefetch, LOOK_MS)

    def backlog(self, queue: str) -> int:
        """Count the messages that wait for a worker of this process."""
        return int(self.queues[queue].qsize()) if queue in self.queues else 0

    def dead(self, queue: str) -> int:  # noqa: ARG002  # Of the port.
        """No message is kept once it has been given up."""
        return 0


class Waking(Queue[Any]):
    """A queue with one consumer, who sleeps while nothing waits and nothing is in hand."""

    _has_ended = False

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: FBT001, FBT002  # Of the library.
        """Wait for work, then as the library does."""
        if block:
            with self.not_empty:
                self.not_empty.wait_for(lambda: self.unfinished_tasks or self._has_ended)
        return super().get(block, timeout)

    def end(self) -> None:
        """Wake the consumer: it should see that it ends."""
        with self.not_empty:
            self._has_ended = True
            self.not_empty.notify_all()


class _Ending(Middleware):
    """Wakes the consumers of a worker that ends."""

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        for queue in worker.consumers:
            broker.queues[queue].end()


def _nothing_kept() -> Any:
    return deque(maxlen=0)
