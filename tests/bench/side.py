"""One of the services that are compared: what an answer costs all of its processes."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.bench.load import Load, Outcome, outcome_of
from tests.bench.processor import US, spent_s


@dataclass(frozen=True)
class Side:
    """A server with all that stands behind it; `settle` waits until what it owes is done."""

    name: str
    port: int
    pids: Mapping[str, int]
    settle: Callable[[], object] = int

    def bear(self, load: Load) -> tuple[Outcome, float]:
        """Bear a load; return what came of it, and the µs of processor time of one answer."""
        before = {role: spent_s([pid]) for role, pid in self.pids.items()}
        outcome = outcome_of(load)
        self.settle()
        us = {
            role: (spent_s([pid]) - before[role]) / outcome.answered * US
            for role, pid in self.pids.items()
        }
        roles = ", ".join(f"{role} {each:.0f}" for role, each in us.items())
        times = f"p50 {outcome.p50_ms:.1f} ms, p99 {outcome.p99_ms:.1f} ms"
        told(f"{self.name}: {sum(us.values()):.0f} µs ({roles}), {outcome.per_s:.0f}/s, {times}")
        return outcome, sum(us.values())


def told(line: str) -> None:
    """Tell people what stands behind a figure of the table."""
    print(f"  {line}", file=sys.stderr, flush=True)
