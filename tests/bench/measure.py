"""How a figure is measured: both sides take turns, and the median of each counts."""

from collections.abc import Callable, Sequence
from statistics import median, quantiles
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

Measurement = Callable[[], float]  # One repetition: a rate, or a time.


def medians(ours: Measurement, limit: Measurement, *, repeats: int) -> tuple[float, float]:
    """Warm both up once, then measure them in turns, so that a noisy neighbour meets both."""
    ours()
    limit()
    pairs = [(ours(), limit()) for _ in range(repeats)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def in_turns(*sides: Callable[[], T], repeats: int) -> list[list[T]]:
    """Take turns in the same way with any number of sides; return what came of each."""
    for side in sides:
        side()
    rounds = [[side() for side in sides] for _ in range(repeats)]
    return [list(each) for each in zip(*rounds, strict=True)]


def percentile(times: Sequence[float], percent: int) -> float:
    """Return the time within which so many of a hundred calls were done."""
    return quantiles(times, n=100, method="inclusive")[percent - 1]


def each_ms(count: int, run: Callable[[], object]) -> list[float]:
    """Return how many milliseconds each of so many calls takes."""
    return [seconds(run) * 1_000 for _ in range(count)]


def seconds(run: Callable[[], object]) -> float:
    """Return how long one call takes."""
    started = perf_counter()
    run()
    return perf_counter() - started


def rate(count: int, run: Callable[[], object]) -> float:
    """Return how many of `count` things one call does in a second."""
    return count / seconds(run)
