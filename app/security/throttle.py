"""How long a client with too many wrong secrets must wait; losing the counts lifts all waits."""

from dataclasses import dataclass
from datetime import timedelta

from projections.stores.counters import Counters

FAILURES_MAX = 5  # Wrong secrets of a client from an address within a window, before it must wait.
# The same for all clients from an address, or trying many client ids would avoid the limit.
ADDRESS_FAILURES_MAX = 60
WINDOW = timedelta(minutes=1)


@dataclass(frozen=True)
class Throttle:
    """Counts failures in fixed windows: per client and address, and per address."""

    counters: Counters

    def wait_s(self, subject: str, address: str) -> int:
        """Return how many seconds a client at an address must wait; 0 when it may try now."""
        limits = {subject: FAILURES_MAX, address: ADDRESS_FAILURES_MAX}
        found = self.counters.failures([*limits])
        full = [left for each, (failures, left) in found.items() if failures >= limits[each]]
        return -(-max(full, default=0) // 1_000_000)

    def failed(self, subject: str, address: str) -> None:
        for each in sorted({subject, address}):
            self.counters.count_failure(each, WINDOW)
