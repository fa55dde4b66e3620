"""Attempts of an idempotency key: 1, 2, 3 … without a gap, each a stream of its own."""

from collections.abc import Callable
from typing import TypeVar

A = TypeVar("A")


def last_attempt(find: Callable[[int], A | None]) -> tuple[int, A | None]:
    """Return the newest attempt and its number; (0, None) when there is none.

    Doubles, then halves: a key that has failed a thousand times costs twenty looks.
    """
    low, found = 0, None
    high = 1
    while (at_high := find(high)) is not None:
        low, found, high = high, at_high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        at_middle = find(middle)
        if at_middle is None:
            high = middle
        else:
            low, found = middle, at_middle
    return low, found
