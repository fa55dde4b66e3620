"""How messages of RabbitMQ reach the threads of a worker, and which of them are no messages."""

import logging
import time
from typing import Any

import dramatiq.worker
from dramatiq.brokers.rabbitmq import _RabbitmqConsumer
from dramatiq.errors import ConnectionClosed

# Dramatiq's pauses after a lost connection, 3 s and 5 s: work goes on within five in all.
dramatiq.worker.CONSUMER_RESTART_DELAY_SECS = 1.0
dramatiq.worker.POST_PROCESS_MESSAGE_RETRY_DELAY_SECS = 1

SAY_EVERY_S = 15.0

logger = logging.getLogger(__name__)


class DurableConsumer(_RabbitmqConsumer):
    """Dramatiq's consumer, which tells its own messages from those of a lost connection.

    What a lost connection delivered comes again by itself; a number that happens to be used on the
    new one too must not acknowledge another message there.
    """

    def ack(self, message: Any) -> None:
        """Acknowledge, if the broker still waits for it on this connection."""
        self._answer(message, super().ack)

    def nack(self, message: Any) -> None:
        """Give up, under the same condition: a dead letter."""
        self._answer(message, super().nack)

    def _answer(self, message: Any, answer: Any) -> None:
        if message.consumer is not self:
            return
        try:
            answer(message)
        except ConnectionClosed:
            logger.info("a message will come again, its connection was lost")

    def __next__(self) -> Any:
        message = super().__next__()  # type: ignore[no-untyped-call]  # Of Dramatiq.
        if message is None:
            return None
        message.consumer = self
        if not self._is_sound(message):
            logger.error("a message in %s is none of ours and was given up", self.queue_name)
            self.nack(message)
            return None
        return message

    def _is_sound(self, message: Any) -> bool:
        """Tell whether working on it can only fail in its actor, not in the threads around it."""
        return (
            message.queue_name == self.queue_name
            and isinstance(message.actor_name, str)
            and isinstance(message.options, dict)
            and isinstance(message.kwargs, dict)
            and ("eta" in message.options) == (self.queue_name in self.broker.delay_queues)
        )


class Calm(logging.Filter):
    """Lets the line about a lost connection through every 15 s: many threads retry each second."""

    def __init__(self) -> None:
        super().__init__()
        self._said = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop what has just been said."""
        if "connection error" not in str(record.msg):
            return True
        now = time.monotonic()
        if now < self._said + SAY_EVERY_S:
            return False
        self._said = now
        return True

    def listen(self, queue: str) -> None:
        """Filter the lines of one consumer."""
        logging.getLogger(f"dramatiq.worker.ConsumerThread({queue})").addFilter(self)
