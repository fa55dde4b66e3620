"""A publisher whose queue a test can look into, break and work through."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from dramatiq import Worker

from app.settings import LOOKUP_THREADS
from tests.installation import Process
from workers.routes import Dispatcher, Message


class Refusing(Exception):
    """Raised by a broker that is away."""


class Queue:
    """Keeps what was published to it; breaks down after `capacity` messages while that is set."""

    def __init__(self, name: str = "lookup", waiting: int | None = None) -> None:
        self.name, self.waiting = name, waiting
        self.messages: list[Message] = []
        self.capacity: int | None = None

    def publish(self, message: Message) -> None:
        assert message.queue == self.name
        if self.capacity is not None and len(self.messages) >= self.capacity:
            raise Refusing
        self.messages.append(message)

    def backlog(self, queue: str) -> int:
        assert queue == self.name
        return self.waiting if self.waiting is not None else len(self.messages)

    def taken(self) -> list[tuple[Any, ...]]:
        """Take all messages; return their arguments, of which texts are ids."""
        taken, self.messages = self.messages, []
        return [
            tuple(UUID(each) if isinstance(each, str) else each for each in message.arguments)
            for message in taken
        ]


def dispatcher_of(process: Process, queue: Queue) -> Dispatcher:
    return Dispatcher(process.source, queue)


@contextmanager
def working(process: Process, threads: int = LOOKUP_THREADS) -> Iterator[None]:
    """Let threads take messages from the queue of lookups."""
    worker = Worker(process.broker, queues={"lookup"}, worker_threads=threads, worker_timeout=10)
    worker.start()
    try:
        yield
    finally:
        worker.stop(timeout=10_000)
