"""A broker with workers and an actor that a test can watch, fail and delay."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Semaphore

import dramatiq
from dramatiq import Broker, Worker

from app.adapters.queues.rabbitmq import DurableBroker
from tests.installation import PATIENCE_S
from workers.routes import QUEUES, Message, Publisher, Queue


class Bench:
    """Publishes to one broker and remembers what an actor of each queue was called with."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.done: list[str] = []
        self.failed: list[str] = []
        self.given_up: list[str] = []  # The queue of each message that RabbitMQ's could not read.
        if isinstance(broker, DurableBroker):
            broker.on_given_up = self.given_up.append
        self.held: list[str] = []
        self.failing: set[str] = set()
        self.holding: list[str] = []  # Each is held up once, until `go_on` is released.
        self.go_on = Semaphore(0)
        self.publisher = Publisher(broker, broker.backlog)  # type: ignore[attr-defined]  # Of both.
        for queue in QUEUES:
            dramatiq.actor(self._note, broker=broker, actor_name=f"note_{queue}", queue_name=queue)

    def _note(self, text: str) -> None:
        if text in self.holding:
            self.holding.remove(text)
            self.held.append(text)
            self.go_on.acquire(timeout=PATIENCE_S)
        if text in self.failing:
            self.failed.append(text)
            raise KeyError(text)
        self.done.append(text)

    def publish(self, *texts: str, queue: Queue = "lookup") -> None:
        for text in texts:
            self.publisher.publish(Message(f"note_{queue}", queue, (text,)))

    @contextmanager
    def working(self, threads: int = 2, queue: Queue = "lookup") -> Iterator[Worker]:
        worker = Worker(self.broker, queues={queue}, worker_threads=threads, worker_timeout=20)
        worker.start()
        try:
            yield worker
        finally:
            self.go_on.release(100)
            worker.stop(timeout=10_000)


def durable(url: str, *, quorum: bool = False) -> Bench:
    return Bench(DurableBroker(url.split(","), quorum=quorum))
