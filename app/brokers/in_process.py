"""The broker inside this process, for an installation of one: its queues die with it."""

from collections import defaultdict, deque
from typing import Any

from dramatiq import Consumer
from dramatiq.brokers.stub import StubBroker
from dramatiq.middleware import Retries

LOOK_MS = 200  # To look costs little here, and whoever stops waits no longer.


class InProcessBroker(StubBroker):
    """Dramatiq's own in-process broker, without what raises inside threads.

    TimeLimit and ShutdownNotifications are left out: every call has its own time-out. Dead
    letters are not kept: nobody reads them, and the sweep asks again for what was not done.
    """

    given_up = None

    def __init__(self) -> None:
        super().__init__(middleware=[Retries()])
        # Each queue has a worker of its own, and each worker brings its middleware.
        self.logger.addFilter(lambda record: "of the same type twice" not in record.msg)
        self.dead_letters_by_queue = defaultdict(_nothing_kept)

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


def _nothing_kept() -> Any:
    return deque(maxlen=0)
