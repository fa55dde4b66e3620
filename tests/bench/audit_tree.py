"""Take many events into the tree, beside merely reading them.

`python -m tests.bench.audit_tree 1000000` prints rates in processor time of this process, on
SQLite. Reading is shown twice: rows as they are stored, which is what the tree is made of, and
events, as a follower reads them.
"""

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

from domain.log.log import Log
from projections.audit.tree_keeper import BATCH_EVENTS_MAX
from tests.golden.examples import EVENTS
from tests.installation import Installation

WALLETS = 1_000
INSERT = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, state)"
    " VALUES (?, ?, ?, ?)"
)


def rows(log: Log, count: int) -> Iterator[tuple[str, int, str, bytes]]:
    """Yield charges of many wallets, as large as real ones."""
    charged = next(each for each in EVENTS if type(each).__qualname__ == "Wallet.Charged")
    stored = log.mapper.to_stored_event(charged)
    for number in range(count):
        stream, version = UUID(int=number % WALLETS).hex, number // WALLETS + 1
        yield stream, version, stored.topic, stored.state


def rate(count: int, run: Callable[[], object]) -> float:
    """Return how many events a second of processor time were read or taken."""
    began = time.process_time()
    run()
    return count / (time.process_time() - began)


def read(reader: Callable[[int, int], list[tuple[int]]]) -> None:
    after = 0
    while batch := reader(after, BATCH_EVENTS_MAX):
        after = batch[-1][0]


def main(count: int) -> None:
    """Print the three rates and two ratios."""
    with tempfile.TemporaryDirectory() as folder:
        installation = Installation(Path(folder))
        process = installation.process()
        with sqlite3.connect(Path(folder) / "service.db") as connection:
            connection.executemany(INSERT, rows(process.log, count))
        connection.close()
        stored = rate(count, lambda: read(process.log.stored))
        decoded = rate(count, lambda: read(process.log.read))
        taken = rate(count, process.tree_keeper.catch_up)
        installation.close()
    lines = (
        f"rows read {stored:,.0f}/s, events read {decoded:,.0f}/s, taken {taken:,.0f}/s",
        f"taken / rows {taken / stored:.2f}, taken / events {taken / decoded:.2f}",
    )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
