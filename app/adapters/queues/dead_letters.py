"""Dead letters of RabbitMQ: lists them, and sends them again."""

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any
from uuid import UUID

import pika
from dramatiq import DecodeError, Message
from dramatiq.common import xq_name
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from app.adapters.queues.connection import NOT_FOUND, TROUBLE, BrokerAway, publish
from workers.dead_letters import DeadLetter

LIST_MAX = 1_000  # Messages that are listed per queue; nobody would read more.
INDEX_MAX = 10_000  # Above any index of a slice; other numbers are not shown.
NOT_OURS = "NotAMessage"
UNTOLD = "Unknown"  # The process ended before it could write down the reason.
# Removed from a message that is sent again, so that it starts anew.
TRIES = ("retries", "error", "traceback", "requeue_timestamp", "eta")


@dataclass(frozen=True)
class RabbitDeadLetters:
    """Reads and moves dead letters on its own connection, whose end returns those only read.

    Every method raises BrokerAway when RabbitMQ cannot be reached.
    """

    parameters: Sequence[pika.connection.Parameters]
    actors: Container[str]

    def count(self, queue: str) -> int:
        with self._connected() as connection:
            return _count(connection, queue)

    def read(self, queue: str, messages_max: int = LIST_MAX) -> list[DeadLetter]:
        with self._connected() as connection:
            count = min(_count(connection, queue), messages_max)
            return [self._letter(*found) for found in _take(connection.channel(), queue, count)]

    def replay(self, queue: str, messages_max: int | None) -> tuple[int, int]:
        """Move dead letters back into their queue; return how many moved and how many did not.

        Each one is published and confirmed before it is removed.
        """
        moved = left = 0
        with self._connected() as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            # Counted once, so that the loop ends even if moved messages fail again meanwhile.
            for method, _, body in _take(channel, queue, _count(connection, queue)):
                if moved == messages_max:
                    break
                message = self._known(body)
                if message is None:
                    left += 1
                    continue
                publish(channel, queue, _fresh(message, queue))
                channel.basic_ack(method.delivery_tag)
                moved += 1
        return moved, left

    def purge(self, queue: str) -> int:
        with self._connected() as connection:
            if not _count(connection, queue):
                return 0
            purged = connection.channel().queue_purge(xq_name(queue))
            return int(purged.method.message_count)

    @contextmanager
    def _connected(self) -> Iterator[pika.BlockingConnection]:
        try:
            connection = pika.BlockingConnection([*self.parameters])
            try:
                yield connection
            finally:
                if connection.is_open:
                    connection.close()
        except TROUBLE as error:
            raise BrokerAway(error) from error

    def _letter(self, _: Any, properties: pika.BasicProperties, body: bytes) -> DeadLetter:
        deaths = (properties.headers or {}).get("x-death") or [{}]
        died_at = deaths[0].get("time")
        if died_at is not None:
            died_at = died_at.replace(tzinfo=UTC)
        message = self._known(body)
        if message is None:
            return DeadLetter(None, [], died_at, NOT_OURS)
        error = message.options.get("error")
        ids = [each for each in message.args if _is_id(each)]
        return DeadLetter(message.actor_name, ids, died_at, str(error or UNTOLD))

    def _known(self, body: bytes) -> Message[Any] | None:
        """Decode a message that has an actor in this release; None for any other."""
        try:
            message = Message.decode(body)
        except DecodeError:
            return None
        actor: Any = message.actor_name
        options: Any = message.options
        sound = isinstance(actor, str) and isinstance(options, dict)
        return message if sound and actor in self.actors else None


def _fresh(message: Message[Any], queue: str) -> bytes:
    """Encode a message as one that has not been tried yet."""
    options = {name: value for name, value in message.options.items() if name not in TRIES}
    return replace(message, queue_name=queue, options=options).encode()


def _count(connection: pika.BlockingConnection, queue: str) -> int:
    try:
        asked = connection.channel().queue_declare(xq_name(queue), passive=True)
    except ChannelClosedByBroker as error:
        if error.reply_code == NOT_FOUND:
            return 0
        raise
    return int(asked.method.message_count)


def _take(channel: BlockingChannel, queue: str, count: int) -> Iterator[tuple[Any, Any, bytes]]:
    """Fetch the oldest messages without acknowledging; fewer if others take some meanwhile."""
    for _ in range(count):
        method, properties, body = channel.basic_get(xq_name(queue))
        if method is None or body is None:
            return
        yield method, properties, body


def _is_id(argument: object) -> bool:
    """Tell whether an argument is a UUID or the index of a slice; others are not shown."""
    if isinstance(argument, int):
        return 0 <= argument < INDEX_MAX
    try:
        return str(UUID(str(argument))) == argument
    except ValueError:
        return False
