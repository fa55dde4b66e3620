"""Places for requests that hold a thread for long: limited for all, and for each organization."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from uuid import UUID

from domain.errors import RateLimited, ServiceUnavailable


def share_of(total: int) -> int:
    """Return how many of these places or threads one organization may hold: half of them."""
    return max(1, total // 2)


@dataclass(eq=False)
class Places:
    """Places that requests hold; when they are taken, callers are refused at once.

    One organization gets only a share of them, so that some are left for others. `beyond_share` and
    `full` are the texts of refusals. `shown` is entered while a place is held.
    """

    places: int
    share: int
    beyond_share: str
    full: str
    shown: Callable[[], AbstractContextManager[object]] = nullcontext
    _holding: Counter[UUID] = field(default_factory=Counter, init=False)
    _lock: Any = field(default_factory=Lock, init=False)

    def require_share(self, organization_id: UUID) -> None:
        """Raise RateLimited if the organization holds its whole share now."""
        if self._holding[organization_id] >= self.share:
            raise RateLimited(self.beyond_share)

    @contextmanager
    def place(self, organization_id: UUID) -> Iterator[None]:
        """Hold a place; raises RateLimited beyond the share, ServiceUnavailable if all are taken.

        A request that is refused has started nothing.
        """
        with self._lock:
            self.require_share(organization_id)
            if self._holding.total() >= self.places:
                raise ServiceUnavailable(self.full)
            self._holding[organization_id] += 1
        try:
            with self.shown():
                yield
        finally:
            with self._lock:
                self._holding[organization_id] -= 1
                if not self._holding[organization_id]:
                    del self._holding[organization_id]
