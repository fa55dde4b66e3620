"""How long a log the rows of growth are measured on: BENCH_EVENTS events, as 1000000."""

import os


def events() -> int:
    """Return how many events a long log has."""
    return int(os.environ.get("BENCH_EVENTS", "100000"))
