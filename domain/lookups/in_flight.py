"""Limits the lookups that an organization has under way, and so the threads that it can hold."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Condition
from uuid import UUID

from domain.at_once import may_wait
from domain.errors import RateLimited

IN_FLIGHT_MAX = 32
WAITING_MAX = 32
WAIT_S = 5.0
# If a lookup takes longer the provider is slow, and no further thread may wait for a place.
SOON_S = 0.5
TOO_MANY = "Too many lookups of this organization are under way; try again."


class InFlight:
    """Counts what each organization has under way in this process."""

    def __init__(
        self, limit: int = IN_FLIGHT_MAX, waiting_max: int = WAITING_MAX, wait_s: float = WAIT_S
    ) -> None:
        self._limit = limit
        self._waiting_max = waiting_max
        self._wait_s = wait_s
        # When each lookup was begun.
        self._running: defaultdict[UUID, dict[object, float]] = defaultdict(dict)
        self._waiting: Counter[UUID] = Counter()
        self._condition = Condition()

    @contextmanager
    def enter(self, organization_id: UUID) -> Iterator[None]:
        """Hold one place for the duration of the block."""
        leave = self.take(organization_id)
        try:
            yield
        finally:
            leave()

    def take(self, organization_id: UUID) -> Callable[[], None]:
        """Take one place; return a function that gives it back.

        Waits for a place for a while, then raises RateLimited. If too many wait already, it waits
        only while the provider is fast. Otherwise the lookups of one organization would hold every
        thread of the server.
        """
        this = object()
        with self._condition:
            if not self._has_room(organization_id):
                may_wait()
                self._wait(organization_id)
            self._running[organization_id][this] = time.monotonic()
        return partial(self._leave, organization_id, this)

    def _leave(self, organization_id: UUID, this: object) -> None:
        with self._condition:
            del self._running[organization_id][this]
            if not self._running[organization_id]:
                del self._running[organization_id]
            if self._waiting:
                self._condition.notify_all()  # Others may wait for another organization.

    def _wait(self, organization_id: UUID) -> None:
        patience_s = self._patience_s(organization_id)
        self._waiting[organization_id] += 1
        try:
            if not self._condition.wait_for(lambda: self._has_room(organization_id), patience_s):
                raise RateLimited(TOO_MANY)
        finally:
            self._waiting[organization_id] -= 1
            if not self._waiting[organization_id]:
                del self._waiting[organization_id]

    def _has_room(self, organization_id: UUID) -> bool:
        return len(self._running.get(organization_id, ())) < self._limit

    def _patience_s(self, organization_id: UUID) -> float:
        if self._waiting[organization_id] < self._waiting_max:
            return self._wait_s
        now = time.monotonic()
        oldest = next(iter(self._running.get(organization_id, {}).values()), now)
        return max(0.0, oldest + SOON_S - now)
