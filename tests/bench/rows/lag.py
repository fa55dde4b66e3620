"""How far the read models are behind the log, at the highest load over HTTP and at twice as much.

What HTTP would append is appended from here, in commits of 10 ms each, beside the running service.
"""

import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import perf_counter
from uuid import UUID

from tests.bench.history import append_lookups
from tests.bench.installation import DEPOSIT
from tests.bench.measure import percentile
from tests.bench.row import Aim, Row
from tests.bench.rows.lookups import ONE, installation
from tests.installation import Parts

LOAD_S = 2.0
APPEND_S = 4.0
COMMIT_S = 0.01
LOOK_S = 0.005
SETTLE_S = 30.0
MS = 1_000


def measure() -> Iterator[Row]:
    with installation() as made, made.ours() as side:
        outcome, _ = side.bear(made.load(ONE, side.port, LOAD_S))
        once, twice = (
            percentile(_lags_ms(made.container, times * outcome.per_s), 99) for times in (1, 2)
        )
    name = "read models behind the log, p99, at twice the load over HTTP or at this load"
    yield Row(name, twice, once, "ms", Aim(ours_max=MS))


def _lags_ms(container: Parts, lookups_per_s: float) -> list[float]:
    """Append at a pace; return how long after its commit the read models had each batch."""
    organization = container.organization(DEPOSIT)
    commits: deque[tuple[int, float]] = deque()
    ended = Event()
    with ThreadPoolExecutor(1) as pool:
        watched = pool.submit(_watch, container, commits, ended)
        try:
            reached = _append(container, organization, lookups_per_s, commits)
        finally:
            ended.set()
        print(f"  asked {lookups_per_s:.0f}/s, appended {reached:.0f}/s", file=sys.stderr)
        return watched.result()


def _append(
    container: Parts,
    organization: UUID,
    lookups_per_s: float,
    commits: deque[tuple[int, float]],
) -> float:
    """Append for some seconds, catching up where a commit took longer; return the rate."""
    began_s, appended, pause = perf_counter(), 0, Event()
    while (gone_s := perf_counter() - began_s) < APPEND_S:
        due = int(gone_s * lookups_per_s) - appended
        if due > 0:
            append_lookups(container.log, organization, due)
            commits.append((container.log.head(), perf_counter()))
            appended += due
        pause.wait(COMMIT_S)
    return appended / (perf_counter() - began_s)


def _watch(container: Parts, commits: deque[tuple[int, float]], ended: Event) -> list[float]:
    """Look where the read models stand until they have all of it."""
    names, lags_ms, pause = {model.name for model in container.models}, [], Event()
    deadline_s = perf_counter() + APPEND_S + SETTLE_S
    while commits or not ended.is_set():
        assert perf_counter() < deadline_s, "the read models do not catch up"
        places = container.positions.all(container.views)
        slowest = min(places[name].position for name in names)
        now_s = perf_counter()
        while commits and commits[0][0] <= slowest:
            lags_ms.append((now_s - commits.popleft()[1]) * MS)
        pause.wait(LOOK_S)
    return lags_ms
