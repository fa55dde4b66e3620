"""The broker of an installation with one process; its queues end with the process."""

from queue import Queue

from dramatiq import Consumer
from dramatiq.brokers.stub import StubBroker

POLL_MS = 200  # How late a consumer notices its end.


class InProcessBroker(StubBroker):
    """Dramatiq's broker within a process, without middleware that raises inside threads.

    TimeLimit and ShutdownNotifications are left out, because every call has a time-out of its own,
    and retries, because beats ask again for unfinished work.
    """

    def __init__(self) -> None:
        super().__init__(middleware=[])
        # Each queue has a worker of its own, and each worker adds the same middleware.
        self.logger.addFilter(lambda record: "of the same type twice" not in record.msg)

    def declare_queue(self, queue_name: str) -> None:
        """Make a queue, and none for delayed messages, because there are none."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues[queue_name] = Queue()
            self.emit_after("declare_queue", queue_name)

    def consume(
        self,
        queue_name: str,
        prefetch: int = 1,
        timeout: int = POLL_MS,  # noqa: ARG002  # Part of the port.
    ) -> Consumer:
        return super().consume(queue_name, prefetch, POLL_MS)

    def backlog(self, queue: str) -> int:
        return int(self.queues[queue].qsize()) if queue in self.queues else 0

    def delete_former_queues(self) -> dict[str, int]:
        """Return no queue of an earlier release, because queues end with the process."""
        return {}
