"""RabbitMQ: every message is durable, and confirmed before the dispatcher's position moves.

Also the delivery of messages to the threads of a worker. A message is worked on once, whether its
actor raises or not, because the log says what is due and asks for it again.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from operator import methodcaller
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import dramatiq.worker
import msgspec
import pika
from dramatiq import Consumer, Message
from dramatiq.brokers.rabbitmq import RabbitmqBroker, _RabbitmqConsumer
from dramatiq.common import dq_name, xq_name
from dramatiq.errors import ConnectionClosed
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPChannelError, ChannelClosedByBroker, NackError, UnroutableError

from app.adapters.queues.connection import NOT_FOUND, BrokerAway, SharedChannel
from app.settings import WrongSetting
from projections.engine.complaint import Complaint

# Dramatiq pauses for 3 s and 5 s after a lost connection; with 1 s each, work resumes within 5 s.
dramatiq.worker.CONSUMER_RESTART_DELAY_SECS = 1.0
dramatiq.worker.POST_PROCESS_MESSAGE_RETRY_DELAY_SECS = 1

# Options of a message at which Dramatiq would hold it back, or its thread would die.
FOREIGN = {"eta", "throws", "pipe_target"}

logger = logging.getLogger(__name__)


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    queue_name: str
    actor_name: str
    args: list[Any]
    kwargs: dict[str, Any]
    options: dict[str, Any]
    message_id: str
    message_timestamp: int


_decode = msgspec.json.Decoder(_Message).decode


class ReadingConsumer(_RabbitmqConsumer):
    """Dramatiq's consumer, which passes on what can be read.

    A late acknowledgement of a connection that was lost may take away another message, because the
    new one counts from 1 again. That costs seconds at most: workers ask the log for what is due.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)  # type: ignore[no-untyped-call]  # Of Dramatiq.
        self.iterator = self._readable(self.iterator)

    def _readable(self, delivered: Iterator[Any]) -> Iterator[Any]:
        """Pass on what Dramatiq's threads can work on, and drop anything else."""
        for method, properties, body in delivered:
            if method is None or self.broker.can_read(body, self.queue_name):
                yield method, properties, body
                continue
            logger.error("a message of %d bytes in %s cannot be read", len(body), self.queue_name)
            self.broker.on_given_up(self.queue_name)
            self.channel.basic_ack(method.delivery_tag)
            yield None, None, None


# Defaults of parameters that a URL lacks, so that we notice a broker that is gone or blocked.
DEFAULTS = {
    "heartbeat": "15",
    "blocked_connection_timeout": "5",
    "socket_timeout": "5",
    "stack_timeout": "10",
    "connection_attempts": "1",
}
PRECONDITION_FAILED = 406
DURABLE = pika.BasicProperties(delivery_mode=2)  # Of a message that survives a restart.


class DurableBroker(RabbitmqBroker):
    """Dramatiq's RabbitMQ broker with confirmations, and with quorum queues if wanted.

    TimeLimit and ShutdownNotifications are left out, because they raise inside threads.
    So are retries. `on_given_up` is called with the queue of each message that cannot be read.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        quorum: bool,
        on_given_up: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._quorum = quorum
        self.on_given_up = on_given_up
        servers = [parameters(each) for each in urls]
        super().__init__(confirm_delivery=True, middleware=[])
        self.parameters = servers
        self._shared = SharedChannel(servers)
        self._lost = Complaint("the connection to RabbitMQ", ConnectionClosed)
        self.logger.addFilter(lambda record: "of the same type twice" not in record.msg)
        # pika logs six lines and two tracebacks for each failed connection; our error says the
        # same.
        logging.getLogger("pika").setLevel(logging.CRITICAL)

    def backlog(self, queue: str) -> int:
        found = self._inspect(queue)
        return 0 if found is None else int(found.message_count)

    def can_read(self, body: bytes, queue: str) -> bool:
        """Tell whether this is a message for an actor of the queue, as Dramatiq writes them."""
        try:
            message = _decode(body)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return False
        actor = self.actors.get(message.actor_name)
        is_here = actor is not None and actor.queue_name == message.queue_name == queue
        return is_here and not FOREIGN & message.options.keys()

    def declare_queue(self, queue_name: str, *, ensure: bool = False) -> None:
        """Know a queue, and make it if `ensure`. None is made beside it, for nothing is delayed."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.queues_pending.add(queue_name)
            self.emit_after("declare_queue", queue_name)
        if ensure:
            self._ensure_queue(queue_name)

    def delete_former_queues(self) -> dict[str, int]:
        """Delete the queues of earlier releases; return those that hold messages, with how many."""
        left = {}
        for name in [make(queue) for queue in sorted(self.queues) for make in (dq_name, xq_name)]:
            found = self._inspect(name)
            if found is not None and found.message_count:
                left[name] = int(found.message_count)
            elif found is not None and not found.consumer_count:
                self._request(methodcaller("queue_delete", name))
        return left

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Publish a message; returns when the broker has confirmed it, else raises BrokerAway."""
        self.emit_before("enqueue", message, delay)
        try:
            self._publish(message)
        except UnroutableError:  # Somebody has deleted the queue.
            self.queues_pending.add(message.queue_name)
            self._publish(message)
        self.emit_after("enqueue", message, delay)
        return message

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:
        """Consume a queue; a message is fetched only when a thread is free for it.

        Dramatiq fetches two per thread. The second would wait behind a long one while other workers
        are idle, and might miss its deadline for acknowledgement (30 minutes).
        """
        its = logging.getLogger(f"dramatiq.worker.ConsumerThread({queue_name})")
        its.addFilter(self._is_other)
        self.declare_queue(queue_name, ensure=True)
        consumer = ReadingConsumer(self, queue_name, max(1, prefetch // 2), timeout)
        self._lost.over()
        return consumer

    def _is_other(self, record: logging.LogRecord) -> bool:
        """Complain of a lost connection once a minute, where Dramatiq would each second."""
        if is_lost := "connection error" in str(record.msg):
            given = record.args if isinstance(record.args, tuple) else ()
            errors = [each for each in given if isinstance(each, Exception)]
            self._lost.of(errors[-1] if errors else ConnectionError(record.msg))
        return not is_lost

    def close(self) -> None:
        """Close the publishing connection; consumers close with their workers."""
        self._shared.close()
        super().close()

    def _publish(self, message: Message[Any]) -> None:
        self.declare_queue(message.queue_name, ensure=True)
        name, body = message.queue_name, message.encode()
        try:
            self._shared.call(lambda it: it.basic_publish("", name, body, DURABLE, mandatory=True))
        except UnroutableError:
            raise
        except (NackError, AMQPChannelError) as error:
            raise BrokerAway(error) from error

    def _inspect(self, queue: str) -> Any:
        """Return what RabbitMQ tells of a queue, without declaring it; None if there is none."""
        declared = self._request(lambda channel: channel.queue_declare(queue, passive=True))
        return declared and declared.method

    def _request(self, operation: Callable[[BlockingChannel], Any]) -> Any:
        """Run an operation on a queue; return None if there is no such queue."""
        try:
            return self._shared.call(operation)
        except ChannelClosedByBroker as error:
            if error.reply_code == NOT_FOUND:
                return None
            raise BrokerAway(error) from error

    def _ensure_queue(self, canonical_queue_name: str) -> None:
        name = canonical_queue_name
        if name not in self.queues_pending:
            return
        kind = {"x-queue-type": "quorum"} if self._quorum else {}
        # RabbitMQ compares these with those of the queues of an earlier release.
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": xq_name(name)}
        made = {"durable": True, "arguments": {**dead, **kind}}
        try:
            self._shared.call(methodcaller("queue_declare", name, **made))
        except ChannelClosedByBroker as error:
            if error.reply_code != PRECONDITION_FAILED:
                raise BrokerAway(error) from error
            logger.error(  # noqa: TRY400  # The line says it all, and comes once per process and queue.
                "queue %s exists as another kind than QUORUM_QUEUES=%s asks for, and is used as it "
                "is; to change it, let it run empty, stop all processes and delete it (%s)",
                name,
                str(self._quorum).lower(),
                error.reply_text,
            )
        self.queues_pending.discard(name)


def parameters(url: str) -> pika.URLParameters:
    """Parse a URL. Raises WrongSetting without the URL, which may hold a password."""
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")  # As it is resolved.
        query = {**DEFAULTS, **dict(parse_qsl(parts.query))}
        return pika.URLParameters(urlunsplit(parts._replace(query=urlencode(query))))
    except (ValueError, TypeError, AttributeError, SyntaxError, OSError):
        # pika evaluates some parameters as Python, and opens the files that they name.
        raise WrongSetting(
            "BROKER_URL is not a URL of RabbitMQ: see its host, its port, its path, its parameters "
            "and the files that they name; a comma within a URL is written %2C"
        ) from None
