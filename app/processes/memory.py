"""Garbage collection in a process that has started."""

import gc


def settle_memory() -> None:
    """Keep long-lived objects out of garbage collection; rescanning took a tenth of all time."""
    gc.collect()
    gc.freeze()
    collect_seldom()


def collect_seldom() -> None:
    """Collect garbage less often; with many short-lived events it took a third of a long read."""
    gc.set_threshold(10_000, 20, 50)
