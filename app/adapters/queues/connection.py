"""The one connection on which all threads of a process publish and count; opened on first use."""

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

NOT_FOUND = 404
HEARTBEAT_S = 5.0  # How often a thread serves an idle connection, so that heartbeats are answered.
# pika's own errors, its error for a failed handshake, and the system's.
TROUBLE = (AMQPError, AMQPConnectorException, OSError)
ANSWERS = (AMQPChannelError, UnroutableError, NackError)  # The broker is up, but refuses.


class BrokerAway(ConnectionClosed, ConnectionError):
    """Raised when RabbitMQ cannot be reached or accepts nothing; one line, without the password.

    Dramatiq's consumers handle it as a lost connection, commands as an error of the system.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"BROKER_URL: RabbitMQ is not available ({_reason(error)})")  # type: ignore[no-untyped-call]  # Of Dramatiq.


class SharedChannel:
    """Runs the operations of all threads one at a time, on a channel with confirmations.

    If an idle connection was lost, the next operation fails and is run again on a new connection.
    So every operation must be safe to run twice.
    """

    def __init__(self, parameters: Sequence[pika.connection.Parameters]) -> None:
        self._parameters = parameters
        beats_s = [each.heartbeat for each in parameters if isinstance(each.heartbeat, int)]
        self._heartbeat_s = min([HEARTBEAT_S, *(beat_s / 3 for beat_s in beats_s if beat_s)])
        self._lock = RLock()
        self._closed = Event()
        self._heartbeat: Thread | None = None
        self._connection: pika.BlockingConnection | None = None
        self._channel: BlockingChannel | None = None

    def call(self, operation: Callable[[BlockingChannel], T]) -> T:
        """Run an operation. Raises BrokerAway, or the broker's refusal of this operation."""
        with self._lock:
            is_new = self._connection is None
            try:
                return self._run(operation)
            except ANSWERS:
                raise
            except TROUBLE as error:
                if is_new or isinstance(error, ConnectionBlockedTimeout):
                    raise BrokerAway(error) from error
            return self.call(operation)  # On a new connection, because the lost one was dropped.

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._drop()

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
            self._start_heartbeat()
        if self._channel is None:
            self._channel = self._connection.channel()
            self._channel.confirm_delivery()
        return self._channel

    def _drop(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None and connection.is_open:
            with suppress(*TROUBLE):
                connection.close()

    def _start_heartbeat(self) -> None:
        if self._heartbeat is None:
            thread = Thread(target=self._keep_alive, name="broker line", daemon=True)
            thread.start()  # It may fail; then the next call tries again.
            self._heartbeat = thread

    def _keep_alive(self) -> None:
        while not self._closed.wait(self._heartbeat_s):
            with self._lock:
                try:
                    if self._connection is not None:
                        self._connection.process_data_events(0)
                except TROUBLE:
                    self._drop()


def _reason(error: BaseException) -> str:
    """Return the innermost error in words, because pika wraps errors in ones without a text."""
    cause: Any = error
    while (inner := _inner(cause)) is not None:
        cause = inner
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__


def _inner(error: Any) -> BaseException | None:
    candidates = (getattr(error, "exception", None), *error.args)
    return next((each for each in candidates if isinstance(each, BaseException)), None)
