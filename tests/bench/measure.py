"""How a figure comes about: both sides take turns, and the median of each is what counts."""

from collections.abc import Callable
from statistics import median
from time import perf_counter

Measurement = Callable[[], float]  # One repetition: a rate, or a time.


def medians(ours: Measurement, limit: Measurement, *, repeats: int) -> tuple[float, float]:
    """Warm both up once, then measure them in turns, so that a noisy neighbour meets both."""
    ours()
    limit()
    pairs = [(ours(), limit()) for _ in range(repeats)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def seconds(run: Callable[[], object]) -> float:
    """Return how long one call takes."""
    started = perf_counter()
    run()
    return perf_counter() - started


def rate(count: int, run: Callable[[], object]) -> float:
    """Return how many of `count` things one call does in a second."""
    return count / seconds(run)
