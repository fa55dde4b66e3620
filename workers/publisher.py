"""How messages reach a queue, whatever the broker."""

from collections.abc import Callable
from typing import Protocol

from dramatiq import Broker
from dramatiq import Message as DramatiqMessage

from workers.routes import Message


class Publisher(Protocol):
    """Puts messages into queues; returns only when the broker has confirmed."""

    def publish(self, message: Message) -> None:
        """Enqueue one message; a failed call may have landed, so actors tolerate a second one."""
        ...

    def backlog(self, queue: str) -> int:
        """Return how many messages wait in a queue. Raises while the broker is away."""
        ...


class DramatiqPublisher:
    """Publishes through a Dramatiq broker whose transport confirms."""

    def __init__(self, broker: Broker, backlog: Callable[[str], int]) -> None:
        self._broker = broker
        self.backlog = backlog

    def publish(self, message: Message) -> None:
        envelope: DramatiqMessage[None] = DramatiqMessage(
            queue_name=message.queue,
            actor_name=message.actor,
            args=message.arguments,
            kwargs={},
            options={},
        )
        self._broker.enqueue(envelope)
