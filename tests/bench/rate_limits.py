"""What a rate limit costs a request: `python -m tests.bench.rate_limits` prints a row for each.

`DATABASE=postgresql` measures that. Time is that of this process, without the server's; the wait
for a statement is in the second figure.
"""

import time
from collections.abc import Callable, Sequence
from uuid import UUID, uuid4

from app.bootstrap.container import Container
from app.security.rate_limits import RateLimits
from tests.bench.installation import installation

LIMITS = (60, 600, 6_000, 600_000)
TRIES = 2_000
BEYOND = "beyond the limit"


class Counting:
    """The counters of a process, and how often they were asked."""

    def __init__(self, container: Container) -> None:
        self.asked = 0
        self._counts = container.request_counts

    def count(self, organization_id: UUID, minute: int, wanted: int) -> tuple[int, int] | None:
        self.asked += 1
        return self._counts.count(organization_id, minute, wanted)


def cost(counting: Counting, run: Callable[[], object]) -> Sequence[float]:
    """Return processor time and time in µs, and statements, of one request."""
    counting.asked, began_s, worked_s = 0, time.perf_counter(), time.process_time()
    for _ in range(TRIES):
        run()
    worked_s, passed_s = time.process_time() - worked_s, time.perf_counter() - began_s
    return worked_s / TRIES * 1e6, passed_s / TRIES * 1e6, counting.asked / TRIES


def main() -> None:
    with installation() as container:
        counting = Counting(container)
        print("| Limit | Processor, µs | Time, µs | Statements |\n|---|---|---|---|")
        for per_minute in LIMITS:
            limits = RateLimits(counting, container.clock)
            owners = [uuid4() for _ in range(TRIES * 2 // per_minute + 1)]
            turn = iter(range(TRIES))
            each = min(per_minute // 2, TRIES)
            row = cost(
                counting,
                lambda: limits.admit(owners[next(turn) // each], per_minute),  # noqa: B023  # It runs in this round.
            )
            print(f"| {per_minute:,} | {row[0]:.1f} | {row[1]:.1f} | {row[2]:.3f} |")
        limits, owner = RateLimits(counting, container.clock), uuid4()
        while not limits.admit(owner, 10).is_over:
            pass
        row = cost(counting, lambda: limits.admit(owner, 10))
        print(f"| {BEYOND} | {row[0]:.1f} | {row[1]:.1f} | {row[2]:.3f} |")


if __name__ == "__main__":
    main()
