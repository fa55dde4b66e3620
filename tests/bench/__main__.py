"""Measures the service against the limits beside it: `python -m tests.bench [ROW…]`.

Prints one table. With `JSON` set in the environment each row is a line of JSON too.
"""

import logging
import os
import sys
from importlib import import_module
from time import perf_counter

from tests.bench.table import as_json, render

ROWS = (
    "bulk_items",
    "http_lookup",
    "hot_wallet",
    "wallet_processes",
    "projector",
    "old_wallet",
    "many_wallets",
    "long_log",
    "job_read",
    "start",
    "link_creation",
    "link_list",
    "link_detail",
)

FIGURES = "every figure is a median, but those that are called p99"


def main(wanted: list[str]) -> None:
    logging.basicConfig(handlers=[logging.NullHandler()])
    started = perf_counter()
    rows = []
    for name in wanted or ROWS:
        print(f"measuring {name}", file=sys.stderr)
        for row in import_module(f"tests.bench.rows.{name}").measure():
            rows.append(row)
            if os.environ.get("JSON"):
                print(as_json(row), flush=True)
    print(render(rows))
    print(f"\n{perf_counter() - started:.0f} s in all; {FIGURES}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
