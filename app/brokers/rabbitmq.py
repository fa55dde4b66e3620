"""RabbitMQ: every message is durable and its acceptance confirmed before the log is followed on."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import pika
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.middleware import Retries

# What a URL does not say itself: a broker that is gone or blocked is noticed, no call hangs.
DEFAULTS = {
    "heartbeat": "60",
    "blocked_connection_timeout": "10",
    "socket_timeout": "5",
    "stack_timeout": "10",
    "connection_attempts": "1",
}


class DurableBroker(RabbitmqBroker):
    """Dramatiq's RabbitMQ broker with confirmation, and quorum queues where a cluster wants them.

    TimeLimit and ShutdownNotifications are left out, as in one process: they raise inside threads.
    Messages that were given up stay in `<queue>.XQ` for a week.
    """

    def __init__(self, urls: Sequence[str], *, quorum: bool) -> None:
        self._quorum = quorum
        super().__init__(
            url=[with_defaults(each) for each in urls],
            confirm_delivery=True,
            middleware=[Retries()],
        )
        self.logger.addFilter(lambda record: "of the same type twice" not in record.msg)

    def backlog(self, queue: str) -> int:
        """Count the messages that wait for a worker, of whatever process."""
        return self._count(queue, 0)

    def dead(self, queue: str) -> int:
        """Count the messages that were given up."""
        return self._count(queue, 2)

    def _count(self, queue: str, kind: int) -> int:
        try:
            self.declare_queue(queue, ensure=True)
            return int(self.get_queue_message_counts(queue)[kind])
        except pika.exceptions.AMQPError:
            del self.connection  # The next question opens another one.
            raise

    def _build_queue_arguments(self, queue_name: str) -> dict[str, Any]:
        arguments: dict[str, Any]
        arguments = super()._build_queue_arguments(queue_name)  # type: ignore[no-untyped-call]  # Of Dramatiq.
        if self._quorum:
            arguments["x-queue-type"] = "quorum"
        return arguments


def with_defaults(url: str) -> str:
    """Add our time-outs to a URL; what it says itself stands."""
    parts = urlsplit(url)
    query = {**DEFAULTS, **dict(parse_qsl(parts.query))}
    return urlunsplit(parts._replace(query=urlencode(query)))
