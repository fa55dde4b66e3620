"""A bound on paid lookups under way per organization: it bounds what a lost race can cost."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from uuid import UUID

from domain.errors import RateLimited

IN_FLIGHT_MAX = 32
WAIT_S = 5.0


class InFlight:
    """Counts what each organization has under way in this process."""

    def __init__(self, limit: int = IN_FLIGHT_MAX, wait_s: float = WAIT_S) -> None:
        self._limit = limit
        self._wait_s = wait_s
        self._counts: Counter[UUID] = Counter()
        self._condition = Condition()

    @contextmanager
    def enter(self, organization_id: UUID) -> Iterator[None]:
        """Hold one place; waits for one a while, then raises RateLimited."""
        with self._condition:
            if not self._condition.wait_for(
                lambda: self._counts[organization_id] < self._limit, self._wait_s
            ):
                raise RateLimited
            self._counts[organization_id] += 1
        try:
            yield
        finally:
            with self._condition:
                self._counts[organization_id] -= 1
                if not self._counts[organization_id]:
                    del self._counts[organization_id]
                self._condition.notify_all()  # Others may wait for another organization.
