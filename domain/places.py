"""Places for requests that hold a thread for long: limited for all, and for each organization."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from uuid import UUID

from domain.errors import RateLimited, ServiceUnavailable


def share_of(total: int) -> int:
    """Return how many of these places or threads one organization may hold: half of them."""
    return max(1, total // 2)


class Places:
    """Places that requests hold; when they are taken, callers are refused at once.

    One organization gets only a share of them, so that some are left for others. `beyond_share` and
    `full` are the texts of refusals. `shown` is entered while a place is held.
    """

    def __init__(
        self,
        places: int,
        share: int,
        *,
        beyond_share: str,
        full: str,
        shown: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._places = places
        self._share = share
        self._beyond_share = beyond_share
        self._full = full
        self._shown = shown
        self._holding: Counter[UUID] = Counter()
        self._lock = Lock()

    def require_share(self, organization_id: UUID) -> None:
        """Raise RateLimited if the organization holds its whole share now."""
        if self._holding[organization_id] >= self._share:
            raise RateLimited(self._beyond_share)

    @contextmanager
    def place(self, organization_id: UUID) -> Iterator[None]:
        """Hold a place; raises RateLimited beyond the share, ServiceUnavailable if all are taken.

        A request that is refused has started nothing.
        """
        with self._lock:
            self.require_share(organization_id)
            if self._holding.total() >= self._places:
                raise ServiceUnavailable(self._full)
            self._holding[organization_id] += 1
        try:
            with self._shown():
                yield
        finally:
            with self._lock:
                self._holding[organization_id] -= 1
                if not self._holding[organization_id]:
                    del self._holding[organization_id]
