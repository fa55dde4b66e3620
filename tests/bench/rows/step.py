"""A step of each follower over the two events of a lookup: its processor time and the server's."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from statistics import median

from tests.bench.engine import on_postgres
from tests.bench.grown import backends, server_s
from tests.bench.history import append_lookups
from tests.bench.installation import DEPOSIT, installation
from tests.bench.row import Aim, Row

STEPS = 100
ROUNDS = 5
MS = 1_000


def measure() -> Iterator[Row]:
    with installation() as container:
        organization = container.organization(DEPOSIT)
        followers: Mapping[str, Callable[[], object]] = {
            "projector": container.projector.step,
            "dispatcher": container.dispatcher.step,
            "planner of webhooks": container.webhook_planner.step,
        }
        times: dict[str, list[float]] = {name: [] for name in followers}
        for _ in range(ROUNDS + 1):
            url = container.settings.database_url
            pids = backends(url) if on_postgres() else []
            spent_s = dict.fromkeys(followers, 0.0)
            for _ in range(STEPS):
                append_lookups(container.log, organization, 1)
                for name, step in followers.items():
                    spent_s[name] += _spent_s(pids, step)
            for name, each_s in spent_s.items():
                times[name].append(each_s / STEPS * MS)
    for name, rounds in times.items():
        ms = median(rounds[1:])  # The first round opens the connections.
        yield Row(f"a step of the {name} over two events", ms, None, "ms", Aim(ours_max=1.5))


def _spent_s(pids: Collection[int], step: Callable[[], object]) -> float:
    servers_s, own_s = server_s(pids), time.process_time()
    step()
    return time.process_time() - own_s + server_s(pids) - servers_s
