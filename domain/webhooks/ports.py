"""What webhooks need from outside: a sender and the deliveries."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

import msgspec

from domain.ids import derive_id
from domain.webhooks.messages import NAMED_ONLY

# pending: not accepted yet, and tried again at `next_attempt_at`; cancelled: its endpoint was
# disabled or deleted before a success.
DeliveryStatus = Literal["pending", "delivered", "failed", "cancelled"]


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
