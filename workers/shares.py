"""How a worker shares the threads of a queue: one organization holds at most half of them."""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable
from threading import Lock
from uuid import UUID

from domain.places import share_of

PARKED_MAX = 1_000  # Per process; if there is no room, the sweep asks again.
# Further work for one message. Each takes seconds, and RabbitMQ waits half an hour for a message.
FURTHER_MAX = 20

logger = logging.getLogger(__name__)


class Shares:
    """Runs the work of organizations, each in at most its share of the threads.

    Work beyond the share holds no thread: it is parked in memory, and a thread of the same
    organization takes it, oldest first, after its own. If the process dies, parked work is lost
    like a message, and the sweep asks for it again.
    """

    def __init__(self, threads: int) -> None:
        self._share = share_of(threads)
        self._running: Counter[UUID] = Counter()
        self._parked: defaultdict[UUID, dict[UUID, Callable[[], None]]] = defaultdict(dict)
        self._lock = Lock()

    def run(self, organization_id: UUID, work_id: UUID, work: Callable[[], None]) -> None:
        """Do the work now, or leave it to a thread that already works for the organization."""
        if not self._enter(organization_id, work_id, work):
            return
        try:
            work()
        finally:
            self._go_on(organization_id)

    def _enter(self, organization_id: UUID, work_id: UUID, work: Callable[[], None]) -> bool:
        with self._lock:
            if self._running[organization_id] < self._share:
                self._running[organization_id] += 1
                return True
            parked = self._parked[organization_id]
            if work_id not in parked and sum(map(len, self._parked.values())) < PARKED_MAX:
                parked[work_id] = work
            return False

    def _go_on(self, organization_id: UUID) -> None:
        """Do what was parked meanwhile, then give the thread back."""
        for _ in range(FURTHER_MAX):
            work = self._next(organization_id)
            if work is None:
                return
            try:
                work()
            except Exception:
                logger.exception("parked work failed; the sweep asks for it again")
        with self._lock:
            self._leave(organization_id)

    def _next(self, organization_id: UUID) -> Callable[[], None] | None:
        """Take the work that was parked first; if there is none, give the thread back."""
        with self._lock:
            parked = self._parked.get(organization_id)
            if not parked:
                self._leave(organization_id)
                return None
            return parked.pop(next(iter(parked)))

    def _leave(self, organization_id: UUID) -> None:
        self._running[organization_id] -= 1
        if not self._running[organization_id]:
            del self._running[organization_id]
            if not self._parked.get(organization_id):
                self._parked.pop(organization_id, None)
