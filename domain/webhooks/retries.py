"""When a delivery is tried again, and when an endpoint is paused or disabled."""

from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from domain.webhooks.messages import TEST
from domain.webhooks.ports import Delivery, Sent

# After each failed attempt; after the last of these pauses one more attempt is made.
DELAYS = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    *(timedelta(hours=each) for each in (2, 5, 10, 14, 20, 24)),
)
DISABLED_AFTER = timedelta(days=7)  # Of failures without a success.
# From this number of failures in a row, the whole endpoint is paused, each time twice as long.
FAILURES_FREE = 5
PAUSE_MAX = timedelta(minutes=1)


class Health(NamedTuple):
    """The latest failures of an endpoint in a row, and when the first of them was."""

    failures: int
    failing_since: datetime | None

    def after(self, now: datetime, *, is_success: bool) -> "Health":
        if is_success:
            return Health(0, None)
        # A clock that was ahead and has been set back does not put off the end of the seven days.
        return Health(self.failures + 1, min(self.failing_since or now, now))

    def pause(self) -> timedelta | None:
        """Return how long nothing is sent to the endpoint, if it rests."""
        beyond = self.failures - FAILURES_FREE
        return None if beyond < 0 else min(PAUSE_MAX, timedelta(seconds=2 ** min(beyond, 10)))


def after_attempt(
    delivery: Delivery, sent: Sent, now: datetime, *, is_success: bool, is_over: bool
) -> Delivery:
    """Return a delivery as it is after an attempt; a test is never tried again."""
    ended = replace(
        delivery,
        attempts=delivery.attempts + 1,
        retries=delivery.retries + 1,
        attempted_at=now,
        response_status=sent.status,
        duration_ms=sent.duration_ms,
        error=sent.error,
        next_attempt_at=None,
    )
    if is_success:
        return replace(ended, status="delivered")
    if is_over or delivery.type == TEST or delivery.retries >= len(DELAYS):
        return replace(ended, status="failed")
    return replace(ended, next_attempt_at=now + DELAYS[delivery.retries])
