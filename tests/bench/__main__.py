"""Measures the service against the limits beside it: `python -m tests.bench [ROW…]`.

Prints one table. With `RUNS=5` everything is measured five times, and what is shown of a row is the
run with the median ratio.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from time import perf_counter
from types import ModuleType

from tests.bench.row import Row
from tests.bench.table import render

Measure = Callable[..., Iterator[Row]]

ROWS = (
    "lookups",
    "rest",
    "hot_wallet",
    "projector",
    "lag",
    "link_creation",
    "step",
    "readers",
    "crowded",
    "backlog",
    "growth",
)

FIGURES = "every figure is a median, but those that are called p99"


def main(wanted: list[str]) -> None:
    logging.basicConfig(handlers=[logging.NullHandler()])
    started = perf_counter()
    runs = int(os.environ.get("RUNS") or 1)
    rows = []
    for name in wanted or ROWS:
        print(f"measuring {name}", file=sys.stderr)
        rows += measured(import_module(f"tests.bench.rows.{name}"), runs)
    print(render(rows))
    print(f"\n{perf_counter() - started:.0f} s in all; {FIGURES}", file=sys.stderr)


def measured(module: ModuleType, runs: int) -> Iterator[Row]:
    """Measure the rows of a module; what is `prepared` there serves all its runs."""
    prepared = getattr(module, "prepared", None)
    if prepared is None:
        yield from several(module.measure, runs)
        return
    with prepared() as given:
        yield from several(partial(module.measure, *given), runs)


def several(measure: Measure, runs: int) -> Iterator[Row]:
    """Measure everything so often; of each row yield the run whose ratio is the median."""
    if runs == 1:
        yield from measure()
        return
    for row in zip(*(list(measure()) for _ in range(runs)), strict=True):
        yield sorted(row, key=lambda each: each.ours / (each.limit or 1))[runs // 2]


if __name__ == "__main__":
    main(sys.argv[1:])
