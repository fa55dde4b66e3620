"""The webhook endpoints of an organization, and the list that limits their number."""

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import msgspec

from domain.cause import Cause
from domain.daily import Daily
from domain.errors import WebhookDisabled, WebhookLimit
from domain.log.aggregate import ByOperator, Created, Root, itself, sets
from domain.personal import Sealed
from domain.webhooks.signatures import Generation

ENDPOINTS_MAX = 10  # Of an organization.
# A day (UTC). Each change is kept for ever, and every load of an endpoint reads all of them.
CHANGES_MAX = 100
CHANGED = f"The webhook was changed {CHANGES_MAX} times today."
REGISTERED = f"The organization has registered {CHANGES_MAX} webhooks today."
BOTH_VALID = timedelta(hours=24)  # How long the secret before the newest still signs.
# Stands for the month of the key that seals addresses, because an endpoint outlives months. As text
# it sorts after every month, so the erasure of past months leaves addresses alone.
LASTING = "lasting"

DisabledReason = Literal["asked", "gone", "failing", "operator"]


class Address(msgspec.Struct, frozen=True):
    """The URL of an endpoint, and its organization's words for it; sealed in events."""

    url: str
    description: str | None


class WebhookEndpoint(Root):
    """An endpoint. `events` are the types that it gets; None: all that need not be named.

    A secret is derived from the id, the generation and a key, so the log holds no secret.
    """

    TOPIC = "webhook_endpoint"
    OWN = ("organization_id",)

    class Event(Root.Event):
        organization_id: UUID

    class Registered(Event, Created):
        TOPIC = "webhook_endpoint.registered"

        personal: Sealed
        events: list[str] | None
        key_id: str | None = field(default=None, kw_only=True)

        def apply(self, aggregate: "WebhookEndpoint") -> None:
            aggregate.registered, aggregate.organization_id = self, self.organization_id
            aggregate.personal, aggregate.events = self.personal, self.events
            aggregate.secrets = [Generation(1, self.key_id)]
            aggregate.secret_since = aggregate.fresh_since = self.timestamp

    class Changed(Event):
        """Holds the address and the types as they are from now on."""

        TOPIC = "webhook_endpoint.changed"

        personal: Sealed
        events: list[str] | None

        def apply(self, aggregate: "WebhookEndpoint") -> None:
            aggregate.personal, aggregate.events = self.personal, self.events
            aggregate.fresh_since = self.timestamp
            aggregate.changes = aggregate.changes.again(self.timestamp)

    class SecretRotated(Event):
        """The secret of the previous generation also signs until `previous_until`."""

        TOPIC = "webhook_endpoint.secret_rotated"

        generation: int
        previous_until: datetime
        key_id: str | None = field(default=None, kw_only=True)

        def apply(self, aggregate: "WebhookEndpoint") -> None:
            made = Generation(self.generation, self.key_id)
            aggregate.secrets = [*aggregate.secrets, made]
            aggregate.previous_until = self.previous_until
            aggregate.secret_since = self.timestamp
            aggregate.changes = aggregate.changes.again(self.timestamp)

    class Disabled(Event, ByOperator):
        """`asked` by its organization or by an `operator`, `gone`: 410, `failing`: for a week."""

        TOPIC = "webhook_endpoint.disabled"
        SETS = sets(disabled=itself)

        reason: DisabledReason

    class Enabled(Event, ByOperator):
        """It gets messages about events from now on; those missed meanwhile are not sent."""

        TOPIC = "webhook_endpoint.enabled"

        def apply(self, aggregate: "WebhookEndpoint") -> None:
            aggregate.disabled = None
            aggregate.fresh_since = self.timestamp
            aggregate.changes = aggregate.changes.again(self.timestamp)

    class Deleted(Event, ByOperator):
        """Saved together with its removal from the list."""

        TOPIC = "webhook_endpoint.deleted"
        SETS = sets(is_deleted=True)

    registered: Registered
    organization_id: UUID
    personal: Sealed
    events: list[str] | None
    secrets: list[Generation]  # Oldest first.
    secret_since: datetime
    fresh_since: datetime  # Failures before this moment no longer count.
    previous_until: datetime | None = None
    disabled: Disabled | None = None
    is_deleted: bool = False
    changes: Daily = Daily()

    def generations(self, at: datetime) -> list[Generation]:
        """Return the generations of the secrets that sign at a moment, the newest first."""
        both = self.previous_until is not None and at < self.previous_until
        return self.secrets[: -3 if both else -2 : -1]

    def change(self, personal: Sealed, events: Sequence[str] | None, cause: Cause) -> None:
        """Replace the address and the types; raises RateLimited after too many changes."""
        self._require_few(cause)
        listed = None if events is None else list(events)
        self.record(self.Changed, cause, personal=personal, events=listed)

    def rotate_secret(self, key_id: str | None, cause: Cause) -> Generation:
        """Begin a generation of the secret; the previous one also signs for a day."""
        self._require_few(cause)
        made = Generation(self.secrets[-1].number + 1, key_id)
        facts = {"generation": made.number, "key_id": key_id}
        self.record(self.SecretRotated, cause, previous_until=cause.at + BOTH_VALID, **facts)
        return made

    def disable(self, reason: DisabledReason, cause: Cause) -> None:
        """Send it nothing from now on; does nothing if it is disabled already, or deleted."""
        if self.disabled is None and not self.is_deleted:
            self.record(self.Disabled, cause, reason=reason)

    def enable(self, cause: Cause) -> None:
        if self.disabled is not None:
            self._require_few(cause)
            self.record(self.Enabled, cause)

    def require_enabled(self) -> None:
        if self.disabled is not None:
            raise WebhookDisabled

    def _require_few(self, cause: Cause) -> None:
        self.changes.require_less(CHANGES_MAX, cause.at, CHANGED)


class WebhookList(Root):
    """The endpoints that an organization has; this one stream limits their number."""

    TOPIC = "webhook_list"
    OWN = ("organization_id",)

    class Event(Root.Event):
        organization_id: UUID

    class Opened(Event, Created):
        TOPIC = "webhook_list.opened"
        SETS = sets("organization_id", endpoint_ids=lambda _: [])

    class Added(Event):
        """Saved together with the registration."""

        TOPIC = "webhook_list.added"

        endpoint_id: UUID

        def apply(self, aggregate: "WebhookList") -> None:
            aggregate.endpoint_ids.append(self.endpoint_id)
            aggregate.additions = aggregate.additions.again(self.timestamp)

    class Removed(Event):
        """Saved together with the deletion."""

        TOPIC = "webhook_list.removed"

        endpoint_id: UUID

        def apply(self, aggregate: "WebhookList") -> None:
            aggregate.endpoint_ids.remove(self.endpoint_id)

    organization_id: UUID
    endpoint_ids: list[UUID]  # Oldest first.
    additions: Daily = Daily()

    def add(self, endpoint_id: UUID, cause: Cause) -> None:
        """Add an endpoint; raises WebhookLimit and RateLimited."""
        if len(self.endpoint_ids) >= ENDPOINTS_MAX:
            raise WebhookLimit
        self.additions.require_less(CHANGES_MAX, cause.at, REGISTERED)
        self.record(self.Added, cause, endpoint_id=endpoint_id)


class WebhookRequest(Root):
    """One request about an endpoint: a test, a redelivery or a new secret.

    With an Idempotency-Key its id is derived, so the log itself refuses a twin.
    """

    TOPIC = "webhook_request"

    class Event(Root.Event):
        SETS = sets(asked=itself)

        organization_id: UUID
        endpoint_id: UUID

    class TestAsked(Event, Created, ByOperator):
        TOPIC = "webhook_request.test_asked"

    class RedeliveryAsked(Event, Created, ByOperator):
        TOPIC = "webhook_request.redelivery_asked"

        delivery_id: UUID

    class RedeliveriesAsked(Event, Created):
        """These had failed or were cancelled; all of those planned `since`, or the first."""

        TOPIC = "webhook_request.redeliveries_asked"

        since: datetime
        delivery_ids: list[UUID]
        has_more: bool

    class RotationAsked(Event, Created):
        """Saved together with the rotation that it asked for."""

        TOPIC = "webhook_request.rotation_asked"

        generation: int

    asked: TestAsked | RedeliveryAsked | RedeliveriesAsked | RotationAsked
