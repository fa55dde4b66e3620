"""Each operation among ten times or a hundred times as many events, beside the same among 10⁵.

Sizes differ in organizations, all alike; who asks is made the ordinary way in each installation.
What counts is the operation that grows most. `BENCH_GROWTH_EVENTS=10000000` for the whole size.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from statistics import median

import psycopg

from tests.bench.engine import new_databases, on_postgres
from tests.bench.filling import fill
from tests.bench.grown import EVENTS_EACH, OPERATIONS, make, new_customer, playing, size, us_each
from tests.bench.measure import in_turns
from tests.bench.row import Aim, Row

SMALL = 100_000
REPEATS = 5
AIM = Aim(ratio_max=1.3)

Costs = Mapping[str, tuple[float, float]]  # In µs: among few, among many.


def measure() -> Iterator[Row]:
    if not on_postgres():  # It fills by COPY, and nobody has as much on SQLite.
        return
    databases, events = new_databases(), size()
    base = databases.new()
    before = make(base)
    small, large = (databases.new(base.rpartition("/")[2]) for _ in range(2))
    for url, wanted in ((small, SMALL), (large, events)):
        fill(url, before, wanted // EVENTS_EACH - 1)
    for told in ("fresh", "analysed"):
        costs = costs_of(small, large)
        name, (few, many) = max(costs.items(), key=lambda each: each[1][1] / each[1][0])
        yield Row(f"{events:,} events, {told}: {name} / {SMALL:,}", many, few, "µs", AIM)
        for url in (small, large):
            with psycopg.connect(url, autocommit=True) as server:
                server.execute("ANALYZE")
    for url in (small, large, base):
        databases.drop(url)


def costs_of(small: str, large: str) -> Costs:
    """Measure every operation in both, in turns; tell each."""
    costs = {}
    with ExitStack() as stack:
        crews = [stack.enter_context(playing(url)) for url in (small, large)]
        sides = [new_customer(crew) for crew in crews]
        for name, operation in OPERATIONS.items():
            runs = [partial(us_each, it, operation) for it in sides]
            few, many = map(median, in_turns(*runs, repeats=REPEATS))
            costs[name] = few, many
            told = f"  {name}: {few:.0f} µs, among many {many:.0f} µs, {many / few:.2f}"
            print(told, file=sys.stderr, flush=True)
    return costs
