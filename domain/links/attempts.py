"""Attempts under one idempotency key: 1, 2, 3 … without a gap; each has its own stream."""

from collections.abc import Callable
from typing import TypeVar

from domain.errors import IdempotencyKeyReused

FAILURES_MAX = 1 << 20  # A million failures of one key, each reported to the sender.
USED_UP = "This Idempotency-Key has failed too often; use another one."

A = TypeVar("A")


def last_attempt(find: Callable[[int], A | None]) -> tuple[int, A | None]:
    """Return the number of the newest attempt, and the attempt; (0, None) if there is none.

    Searches by doubling, then halving: a key that has failed a thousand times takes twenty reads.
    Raises IdempotencyKeyReused for a key that has failed FAILURES_MAX times.
    """
    low, found = 0, None
    high = 1
    while (at_high := find(high)) is not None:
        if high >= FAILURES_MAX:
            raise IdempotencyKeyReused(message=USED_UP)
        low, found, high = high, at_high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        at_middle = find(middle)
        if at_middle is None:
            high = middle
        else:
            low, found = middle, at_middle
    return low, found
