"""RabbitMQ: every message is durable, and confirmed before the dispatcher's position moves.

Also the delivery of messages to the threads of a worker. If an actor raises, its message is soon
tried once more, then it is given up, like one that cannot be read: it is counted and dropped. Its
work is not lost, because the log says what is due.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import dramatiq.worker
import pika
from dramatiq import Broker, Consumer, Message
from dramatiq.brokers.rabbitmq import RabbitmqBroker, _RabbitmqConsumer
from dramatiq.common import current_millis, dq_name, q_name, xq_name
from dramatiq.errors import ConnectionClosed
from dramatiq.middleware import Retries
from pika.exceptions import AMQPChannelError, ChannelClosedByBroker, NackError, UnroutableError

from app.adapters.queues.connection import NOT_FOUND, BrokerAway, SharedChannel, publish
from app.settings import WrongSetting

# Dramatiq pauses for 3 s and 5 s after a lost connection; with 1 s each, work resumes within 5 s.
dramatiq.worker.CONSUMER_RESTART_DELAY_SECS = 1.0
dramatiq.worker.POST_PROCESS_MESSAGE_RETRY_DELAY_SECS = 1

SAY_EVERY_S = 15.0

logger = logging.getLogger(__name__)


class DurableConsumer(_RabbitmqConsumer):
    """Dramatiq's consumer, but it acknowledges no message of an earlier connection.

    RabbitMQ delivers the messages of a lost connection again. The new connection uses the same
    delivery numbers, so a late acknowledgement would be for another message.
    """

    def ack(self, message: Any) -> None:
        """Acknowledge a message, unless its connection was lost."""
        self._answer(message, super().ack)

    def nack(self, message: Any) -> None:
        """Give a message up, unless its connection was lost; nobody gets it again."""
        self._answer(message, super().nack)

    def _nack(self, tag: int) -> None:
        super()._nack(tag)  # type: ignore[no-untyped-call]  # Of Dramatiq, which calls it for what it cannot decode too.
        self.broker.on_given_up(q_name(self.queue_name))

    def _answer(self, message: Any, answer: Any) -> None:
        if message.consumer is not self:
            return
        try:
            answer(message)
        except ConnectionClosed:
            logger.info("a connection was lost; its message will be delivered again")

    def __next__(self) -> Any:
        message = super().__next__()  # type: ignore[no-untyped-call]  # Of Dramatiq.
        if message is None:
            return None
        message.consumer = self
        if not self._is_sound(message):
            size, queue = len(message.encode()), self.queue_name
            logger.error("a message of %d bytes in %s is not one of ours: given up", size, queue)
            self.nack(message)
            return None
        return message

    def _is_sound(self, message: Any) -> bool:
        """Tell whether a message has a form that Dramatiq's own threads can handle."""
        return (
            message.queue_name == self.queue_name
            and isinstance(message.actor_name, str)
            and isinstance(message.options, dict)
            and isinstance(message.kwargs, dict)
            and ("eta" in message.options) == (self.queue_name in self.broker.delay_queues)
        )


class SeldomLost(logging.Filter):
    """Passes Dramatiq's log line on a lost connection once in 15 s, instead of every second."""

    def __init__(self) -> None:
        super().__init__()
        self._said = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop a line that was just logged."""
        if "connection error" not in str(record.msg):
            return True
        now = time.monotonic()
        if now < self._said + SAY_EVERY_S:
            return False
        self._said = now
        return True

    def listen(self, queue: str) -> None:
        """Filter the lines of the consumer of a queue."""
        logging.getLogger(f"dramatiq.worker.ConsumerThread({queue})").addFilter(self)


class KeepingRetries(Retries):
    """Dramatiq's retries, for a broker that may refuse them.

    If a retry cannot be published, Dramatiq would acknowledge the message; here it is given up. It
    keeps only the type of the error, because the text might hold a secret.
    """

    def after_process_message(
        self,
        broker: Broker,
        message: Any,
        *,
        result: Any = None,
        exception: BaseException | None = None,
    ) -> None:
        """Publish the next attempt, or fail the message."""
        if exception is None:
            return
        try:
            message.options["error"] = type(exception).__name__
            super().after_process_message(broker, message, result=result, exception=exception)  # type: ignore[no-untyped-call]  # Of Dramatiq.
        except Exception:
            message.fail()
            raise

    def before_enqueue(self, broker: Broker, message: Any, delay: int | None) -> None:  # noqa: ARG002  # The signature is Dramatiq's.
        """Remove the text of the error from the message."""
        message.options.pop("traceback", None)


# Defaults of parameters that a URL lacks, so that we notice a broker that is gone or blocked.
DEFAULTS = {
    "heartbeat": "15",
    "blocked_connection_timeout": "5",
    "socket_timeout": "5",
    "stack_timeout": "10",
    "connection_attempts": "1",
}
PRECONDITION_FAILED = 406


class DurableBroker(RabbitmqBroker):
    """Dramatiq's RabbitMQ broker with confirmations, and with quorum queues if wanted.

    TimeLimit and ShutdownNotifications are left out, because they raise inside threads.
    `on_given_up` is called with the queue of each message that was given up.
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
        places = [parameters(each) for each in urls]
        super().__init__(confirm_delivery=True, middleware=[KeepingRetries()])
        self.parameters = places
        self._shared = SharedChannel(places)
        self._seldom_lost = SeldomLost()
        self.logger.addFilter(lambda record: "of the same type twice" not in record.msg)
        # pika logs six lines and two tracebacks for each failed connection; our error says the
        # same.
        logging.getLogger("pika").setLevel(logging.CRITICAL)

    def backlog(self, queue: str) -> int:
        """Count the messages that wait for a worker of any process."""
        return self._count(queue)

    def drain(self) -> None:
        """Return at once, because the workers of other processes handle waiting messages."""

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Publish a message; returns when the broker has confirmed it, else raises BrokerAway."""
        if delay is not None:
            message = message.copy(
                queue_name=dq_name(message.queue_name), options={"eta": current_millis() + delay}
            )
        self.emit_before("enqueue", message, delay)
        try:
            self._publish(message)
        except UnroutableError:  # Somebody has deleted the queue.
            self.queues_pending.add(q_name(message.queue_name))
            self._publish(message)
        self.emit_after("enqueue", message, delay)
        return message

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:
        """Consume a queue; a message is fetched only when a thread is free for it.

        Dramatiq fetches two per thread. The second would wait behind a long one while other workers
        are idle, and might miss its deadline for acknowledgement (30 minutes).
        """
        self._seldom_lost.listen(queue_name)
        self.declare_queue(queue_name, ensure=True)
        # A consumer of delayed messages only holds them, for half a second.
        is_delayed = queue_name in self.delay_queues
        count = prefetch if is_delayed else max(1, prefetch // 2)
        return DurableConsumer(self, queue_name, count, timeout)  # type: ignore[no-untyped-call]  # Of Dramatiq.

    def close(self) -> None:
        """Close the publishing connection; consumers close with their workers."""
        self._shared.close()
        super().close()

    def _publish(self, message: Message[Any]) -> None:
        self.declare_queue(message.queue_name, ensure=True)
        body = message.encode()
        try:
            self._shared.call(lambda channel: publish(channel, message.queue_name, body))
        except UnroutableError:
            raise
        except (NackError, AMQPChannelError) as error:
            raise BrokerAway(error) from error

    def _count(self, queue: str) -> int:
        """Count without declaring the queue; one that does not exist holds nothing."""
        try:
            asked = self._shared.call(lambda channel: channel.queue_declare(queue, passive=True))
        except ChannelClosedByBroker as error:
            if error.reply_code == NOT_FOUND:
                return 0
            raise BrokerAway(error) from error
        return int(asked.method.message_count)

    def _ensure_queue(self, canonical_queue_name: str) -> None:
        name = canonical_queue_name
        if name not in self.queues_pending:
            return
        kind = {"x-queue-type": "quorum"} if self._quorum else {}
        # RabbitMQ compares these with those of the queues of an earlier release, which also had a
        # queue of this name. Without one it drops what is given up.
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": xq_name(name)}
        self._declare(name, {**dead, **kind})
        self._declare(dq_name(name), {**dead, **kind})
        self.queues_pending.discard(name)

    def _declare(self, queue: str, arguments: dict[str, Any]) -> None:
        try:
            self._shared.call(
                lambda channel: channel.queue_declare(queue, durable=True, arguments=arguments)
            )
        except ChannelClosedByBroker as error:
            if error.reply_code != PRECONDITION_FAILED:
                raise BrokerAway(error) from error
            logger.error(  # noqa: TRY400  # The line says it all, and comes once per process and queue.
                "queue %s exists as another kind than QUORUM_QUEUES=%s asks for, and is used as it "
                "is; to change it, let it run empty, stop all processes and delete it (%s)",
                queue,
                str(self._quorum).lower(),
                error.reply_text,
            )


def parameters(url: str) -> pika.URLParameters:
    """Parse a URL. Raises WrongSetting without the URL, which may hold a password."""
    try:
        return pika.URLParameters(with_defaults(url))
    except (ValueError, TypeError, AttributeError, SyntaxError, OSError):
        # pika evaluates some parameters as Python, and opens the files that they name.
        message = (
            "BROKER_URL is not a URL of RabbitMQ: see its port, its path, its parameters and the "
            "files that they name; a comma within a URL is written %2C"
        )
        raise WrongSetting(message) from None


def with_defaults(url: str) -> str:
    """Add our time-outs to a URL; settings in the URL win."""
    parts = urlsplit(url)
    query = {**DEFAULTS, **dict(parse_qsl(parts.query))}
    return urlunsplit(parts._replace(query=urlencode(query)))
