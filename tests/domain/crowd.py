"""Callers that wait together: the committer is kept busy until all of them stand in its queue."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue
from threading import Condition, Event
from typing import Any, Self, TypeVar
from uuid import UUID

from domain.accounts.committer import Committer
from domain.accounts.wallet import Wallet
from domain.log.log import Log
from tests.domain.build import ORGANIZATION, adjustment, cause, open_wallet
from tests.domain.writers import Writer

T = TypeVar("T")
CALLERS_MAX = 64
PATIENCE_S = 10.0  # Bounds a test whose condition never comes true.
ELSEWHERE = UUID("e15e0000-0000-4000-8000-000000000000")  # Its wallet keeps the committer busy.


class WatchedQueue(Queue[Any]):
    """A queue that lets a test wait until it has grown."""

    def __init__(self) -> None:
        super().__init__()
        self._grown = Condition(self.mutex)

    def _put(self, item: Any) -> None:
        super()._put(item)
        self._grown.notify_all()

    def wait_for(self, size: int) -> None:
        """Wait until so many stand in the queue."""
        with self._grown:
            assert self._grown.wait_for(lambda: self._qsize() >= size, PATIENCE_S)


class Crowd:
    """Threads that call one committer."""

    def __init__(self, writer: Writer, queue: WatchedQueue) -> None:
        self.writer = writer
        self.queue = queue
        self._pool = ThreadPoolExecutor(CALLERS_MAX)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def fund(self, amount: str = "1.00") -> tuple[Log, Committer]:
        """Open the wallet of our organization with an amount."""
        log, committer = self.writer.log, self.writer.committer
        open_wallet(log, committer, amount, ORGANIZATION)
        return log, committer

    def queue_up(self, *calls: Callable[[], T]) -> list[Future[T]]:
        """Let threads make calls that have to wait; they stand in the queue in this order."""
        futures = []
        for call in calls:
            size = self.queue.qsize()
            futures.append(self._pool.submit(call))
            self.queue.wait_for(size + 1)
        return futures

    @contextmanager
    def waiting(self) -> Iterator[Future[int]]:
        """Keep the committer busy meanwhile, so that the next batch is all that was queued up."""
        busy, released = Event(), Event()

        def stall(wallet: Wallet) -> None:
            busy.set()
            assert released.wait(PATIENCE_S)
            wallet.enter(adjustment(1), "EUR", cause())

        wallet_id = open_wallet(self.writer.log, self.writer.committer, "0", ELSEWHERE)
        stalled = self._pool.submit(self.writer.committer.commit, wallet_id, stall)
        assert busy.wait(PATIENCE_S)
        try:
            yield stalled
        finally:
            released.set()
            stalled.exception(PATIENCE_S)  # Its caller may have lost patience in this test.
