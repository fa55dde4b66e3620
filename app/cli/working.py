"""A worker inside a command, for work that an operator wants done at once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dramatiq import Worker

from app.bootstrap.container import Container

WORKER_THREADS = 4
WORKER_TIMEOUT_MS = 100  # How soon an idle worker notices the end.
STOP_MS = 25_000  # A clean end takes at most 30 s in all; unfinished work is swept again later.


@contextmanager
def working(container: Container) -> Iterator[Callable[[], None]]:
    """Work on every queue meanwhile; lends a function that waits until all messages are done.

    With RabbitMQ the workers of other processes do the work, and nothing is waited for.
    """
    container.currency.check()  # The work may charge.
    container.clock_check.require()
    broker = container.broker
    if not container.settings.has_own_broker:
        yield broker.drain
        return
    worker = Worker(broker, worker_threads=WORKER_THREADS, worker_timeout=WORKER_TIMEOUT_MS)
    worker.start()
    try:
        yield broker.drain
    finally:
        worker.stop(STOP_MS)
