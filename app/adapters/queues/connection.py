"""The one connection on which the threads of a process publish and count, made when it is used."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, RLock, Thread
from typing import Any, TypeVar

import pika
from dramatiq.errors import ConnectionClosed
from pika.adapters.blocking_connection import BlockingChannel
from pika.adapters.utils.connection_workflow import AMQPConnectorException
from pika.exceptions import (
    AMQPChannelError,
    AMQPError,
    ConnectionBlockedTimeout,
    NackError,
    UnroutableError,
)

T = TypeVar("T")

PERSISTENT = 2  # The delivery mode of a message that outlives the broker.
NOT_FOUND = 404
KEEP_S = 5.0  # Between two looks after an idle connection: its heartbeats are nobody else's task.
# A broker that takes no part in the handshake is an error of a third family.
TROUBLE = (AMQPError, AMQPConnectorException, OSError)
ANSWERS = (AMQPChannelError, UnroutableError, NackError)  # The broker is there and says no.


class BrokerAway(ConnectionClosed, ConnectionError):
    """Raised in one line, without the password, when RabbitMQ cannot be reached or accepts nothing.

    Dramatiq's consumers know it as a lost connection, commands as an error of the system.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"BROKER_URL: RabbitMQ is not available ({_reason(error)})")  # type: ignore[no-untyped-call]  # Of Dramatiq.


class Line:
    """Runs one operation at a time on a channel that confirms.

    A connection that was lost while nobody used it is noticed at the next operation, which is then
    run once more on a new one: every operation must bear that.
    """

    def __init__(self, parameters: Sequence[pika.connection.Parameters]) -> None:
        self._parameters = parameters
        beats_s = [each.heartbeat for each in parameters if isinstance(each.heartbeat, int)]
        self._keep_s = min([KEEP_S, *(beat_s / 3 for beat_s in beats_s if beat_s)])
        self._lock = RLock()
        self._closed = Event()
        self._keeper: Thread | None = None
        self._connection: pika.BlockingConnection | None = None
        self._channel: BlockingChannel | None = None

    def call(self, operation: Callable[[BlockingChannel], T]) -> T:
        """Run it. Raises BrokerAway, or what the broker answers to this operation alone."""
        with self._lock:
            try:
                if self._connection is None:
                    return self._run(operation)
                with suppress(_Stale):
                    return self._run_again(operation)
                return self._run(operation)
            except ANSWERS:
                raise
            except TROUBLE as error:
                raise BrokerAway(error) from error

    def close(self) -> None:
        """Say goodbye, if there is anybody."""
        self._closed.set()
        with self._lock:
            self._drop()

    def _run_again(self, operation: Callable[[BlockingChannel], T]) -> T:
        try:
            return self._run(operation)
        except (*ANSWERS, ConnectionBlockedTimeout):
            raise
        except TROUBLE as error:
            raise _Stale from error

    def _run(self, operation: Callable[[BlockingChannel], T]) -> T:
        try:
            return operation(self._open())
        except ANSWERS:
            if self._channel is not None and not self._channel.is_open:
                self._channel = None
            raise
        except BaseException:
            self._drop()
            raise

    def _open(self) -> BlockingChannel:
        if self._connection is None:
            self._connection = pika.BlockingConnection([*self._parameters])
            self._keep()
        if self._channel is None:
            self._channel = self._connection.channel()
            self._channel.confirm_delivery()
        return self._channel

    def _drop(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None and connection.is_open:
            with suppress(*TROUBLE):
                connection.close()

    def _keep(self) -> None:
        if self._keeper is None:
            self._keeper = Thread(target=self._keep_alive, name="broker line", daemon=True)
            self._keeper.start()

    def _keep_alive(self) -> None:
        while not self._closed.wait(self._keep_s):
            with self._lock:
                try:
                    if self._connection is not None:
                        self._connection.process_data_events(0)
                except TROUBLE:
                    self._drop()


def publish(channel: BlockingChannel, queue: str, body: bytes) -> None:
    """Put a message into a queue and wait for the confirmation."""
    properties = pika.BasicProperties(delivery_mode=PERSISTENT)
    channel.basic_publish("", queue, body, properties, mandatory=True)


class _Stale(Exception):
    """Raised when a connection from earlier turned out to be lost."""


def _reason(error: BaseException) -> str:
    """Dig out what the system or the broker said; pika wraps it, and its own text may be empty."""
    cause: Any = error
    while (inner := _inner(cause)) is not None:
        cause = inner
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__


def _inner(error: Any) -> BaseException | None:
    candidates = (getattr(error, "exception", None), *error.args)
    return next((each for each in candidates if isinstance(each, BaseException)), None)
