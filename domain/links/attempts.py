"""Attempts under one idempotency key: 1, 2, 3 … without a gap; each has its own stream."""

from bisect import bisect
from collections.abc import Callable
from functools import cache
from typing import TypeVar
from uuid import UUID

from domain.accounts.refund_by_hand import Refundable
from domain.errors import IdempotencyKeyReused
from domain.ids import derive_id
from domain.log.log import Log

FAILURES_MAX = 1 << 20  # A million failures of one key, each reported to the sender.
USED_UP = "This Idempotency-Key has failed too often; use another one."

A = TypeVar("A")
R = TypeVar("R", bound=Refundable)


def attempt_id(kind: type[Refundable], organization_id: UUID, key: str, attempt: int) -> UUID:
    """Return the stream of one attempt; that of a change of plans is the same for each link.

    A later attempt exists only if the one before it has failed, changed nothing and kept no money.
    """
    return derive_id(kind.KIND, organization_id, key, attempt)


def attempts_of(
    log: Log, kind: type[R], organization_id: UUID, key: str | None
) -> tuple[R | None, UUID | None]:
    """Return the newest attempt under a key, and the id of the next; None without a key."""
    if key is None:
        return None, None

    def stream(attempt: int) -> UUID:
        return attempt_id(kind, organization_id, key, attempt)

    number, newest = last_attempt(lambda attempt: log.find(kind, stream(attempt)))
    return newest, stream(number + 1)


def last_attempt(find: Callable[[int], A | None]) -> tuple[int, A | None]:
    """Return the number of the newest attempt, and the attempt; (0, None) if there is none.

    Searches by doubling, then halving: a key that has failed a thousand times takes twenty reads.
    Raises IdempotencyKeyReused for a key that has failed FAILURES_MAX times.
    """
    find, high = cache(find), 1
    while find(high) is not None:
        if high >= FAILURES_MAX:
            raise IdempotencyKeyReused(message=USED_UP)
        high *= 2
    low = high // 2 + 1
    last = bisect(range(high), 0, low, key=lambda number: find(number) is None) - 1
    return last, find(last) if last else None
