"""Divides the threads of a queue between networks, and those of a network between organizations."""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable
from threading import Lock
from uuid import UUID

from domain.limiter import share_of

PARKED_MAX = 1_000  # Per network and process; if there is no room, the sweep asks again.
# How much parked work one message does. Each takes seconds; RabbitMQ waits half an hour at most.
FURTHER_MAX = 20

_Parked = tuple[UUID, Callable[[], None]]

logger = logging.getLogger(__name__)


class Shares:
    """Runs work within two limits: the share of its network, and in it that of its organization.

    Work beyond a share holds no thread: it is parked in memory, and a thread of the same network
    takes it, oldest first, after its own. If the process dies, parked work is lost like a message,
    and the sweep asks for it again.
    """

    def __init__(self, threads: int, networks: int = 1) -> None:
        self._threads = max(1, threads // networks)
        self._share = share_of(self._threads)
        self._busy: Counter[str] = Counter()
        self._running: Counter[tuple[str, UUID]] = Counter()
        self._parked: defaultdict[str, dict[UUID, _Parked]] = defaultdict(dict)
        self._lock = Lock()

    def run(
        self, network: str, organization_id: UUID, work_id: UUID, work: Callable[[], None]
    ) -> None:
        """Do the work now, or leave it to a thread that already works with the network."""
        if not self._enter(network, organization_id, work_id, work):
            return
        try:
            work()
        finally:
            self._go_on(network, organization_id)

    def _enter(
        self, network: str, organization_id: UUID, work_id: UUID, work: Callable[[], None]
    ) -> bool:
        with self._lock:
            if self._busy[network] < self._threads and self._is_free(network, organization_id):
                self._busy[network] += 1
                self._running[network, organization_id] += 1
                return True
            parked = self._parked[network]
            if work_id not in parked and len(parked) < PARKED_MAX:
                parked[work_id] = organization_id, work
            return False

    def _go_on(self, network: str, organization_id: UUID) -> None:
        """Do the work that was parked meanwhile, then give the thread back."""
        for _ in range(FURTHER_MAX):
            found = self._next(network, organization_id)
            if found is None:
                return
            organization_id, work = found
            try:
                work()
            except Exception:
                logger.exception("parked work failed; the sweep asks for it again")
        with self._lock:
            self._leave(network, organization_id)
            self._busy[network] -= 1

    def _next(self, network: str, organization_id: UUID) -> _Parked | None:
        """Take the oldest parked work that fits; if there is none, give the thread back."""
        with self._lock:
            self._leave(network, organization_id)
            for work_id, parked in self._parked[network].items():
                if self._is_free(network, parked[0]):
                    self._running[network, parked[0]] += 1
                    return self._parked[network].pop(work_id)
            self._busy[network] -= 1
            return None

    def _is_free(self, network: str, organization_id: UUID) -> bool:
        return self._running[network, organization_id] < self._share

    def _leave(self, network: str, organization_id: UUID) -> None:
        self._running[network, organization_id] -= 1
        if not self._running[network, organization_id]:
            del self._running[network, organization_id]
