"""Deliveries of webhooks: what is sent, when it is tried again, and when an endpoint rests."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec.structs import replace

from domain.ids import derive_id
from domain.webhooks.messages import NAMED_ONLY, TEST

# pending: not accepted yet, and tried again at `next_attempt_at`; cancelled: its endpoint was
# disabled or deleted before a success.
DeliveryStatus = Literal["pending", "delivered", "failed", "cancelled"]
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


class Sent(NamedTuple):
    """The outcome of one attempt; `status` None: there was no reply, and `error` says why.

    `error` quotes neither the address nor anything that the endpoint sent.
    """

    status: int | None
    error: str | None
    duration_ms: int


# Sends one request (URL, headers, body) to an endpoint; every failure is returned, none is raised.
Send = Callable[[str, Mapping[str, str], bytes], Sent]


class Delivery(msgspec.Struct, frozen=True):
    """A message to one endpoint; `id` is the `webhook-id` of every attempt.

    `about` is the stream whose first attempts are made in order. `retries` counts the attempts
    since it was planned or asked for again, `attempts` all of them.
    """

    id: UUID
    endpoint_id: UUID
    organization_id: UUID
    about: UUID
    position: int
    type: str
    body: bytes
    created_at: datetime
    status: DeliveryStatus = "pending"
    attempts: int = 0
    retries: int = 0
    next_attempt_at: datetime | None = None
    attempted_at: datetime | None = None
    response_status: int | None = None
    duration_ms: int | None = None
    error: str | None = None


class Sums(NamedTuple):
    """Counts of an endpoint's pending and failed deliveries, and its latest failures in a row."""

    pending: int
    failed: int
    failures: int
    failing_since: datetime | None


def message_id(endpoint_id: UUID, stream_id: UUID, version: int, name: str = "") -> UUID:
    """Return the `webhook-id` of an event at an endpoint, the same at every attempt.

    `name` is its type, which counts where several messages may be about one event.
    """
    of_type = [name] if name in NAMED_ONLY else []
    return derive_id("webhook", endpoint_id, stream_id, version, *of_type)


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
