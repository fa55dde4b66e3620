"""The table of webhook types: which events cause each message, and what its body says."""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.log import Log, Recorded
from domain.lookups.bulk_job import BulkJob
from domain.money import format_amount
from domain.webhooks.endpoint import WebhookRequest

Facts = Mapping[str, Any]
# Returns the facts of an event for its message; None: this event causes no message.
FactsOf = Callable[[Any, "EventContext"], Facts | None]
Kinds = tuple[type[Event], ...]

TEST = "webhook.test"  # Sent only on request, whatever types an endpoint wants.


class WebhookMessage(NamedTuple):
    """A message. Those `about` the same stream (link, job, wallet) are sent in its order."""

    type: str
    organization_id: UUID
    about: UUID
    body: bytes


class EventContext:
    """Looks up what an event does not carry itself.

    What it reads in the log never changes after the event. `thresholds` are those at the event.
    """

    def __init__(self, log: Log, thresholds: Mapping[int, int | None] | None = None) -> None:
        self.log = log
        # By int, because UUIDs are hashed by slow Python code.
        self._thresholds = {} if thresholds is None else thresholds

    def threshold_of(self, organization_id: UUID) -> int | None:
        """Return the balance below which an organization wants a message."""
        return self._thresholds.get(organization_id.int)


def _job(event: Any, context: EventContext) -> Facts:
    job = context.log.get(BulkJob, event.originator_id)
    total, failed = job.created.total_count, len(job.failed)
    status = "failed" if failed == total else "completed"
    return {
        "job_id": event.originator_id,
        "status": "cancelled" if isinstance(event, BulkJob.Cancelled) else status,
        "total_count": total,
        "completed_count": len(job.completed),
        "failed_count": failed,
        "cancelled_count": job.cancelled_count,
    }


def _link(*names: str) -> FactsOf:
    """Tell the id of the link, and these fields of the event."""
    return lambda event, _: {
        "link_id": event.originator_id,
        **{name: _shown(getattr(event, name)) for name in names},
    }


def _activated(event: Link.Activated, _: EventContext) -> Facts:
    return {
        "link_id": event.originator_id,
        "activation_id": event.activation_id,
        "plan_id": event.plan.plan_id,
    }


def _not_activated(event: Link.ProvisioningFailed, _: EventContext) -> Facts:
    refund = event.refund.transaction_id if event.refund is not None else None
    return {
        "link_id": event.originator_id,
        "code": event.code,
        "reason": event.details.get("reason"),
        "refund_transaction_id": refund,
    }


def _topped_up(event: Link.PlanAdded, _: EventContext) -> Facts:
    return {
        "link_id": event.originator_id,
        "change_id": event.change_id,
        "activation_id": event.activation_id,
        "plan_id": event.plan.plan_id,
    }


def _not_topped_up(event: PlanChange.Failed, context: EventContext) -> Facts | None:
    """Tell which plans were not added; a change that only removes plans is no top-up."""
    asked = context.log.get(PlanChange, event.originator_id).requested
    lost = asked.additions[max(0, event.index - len(asked.removals)) :]
    if not lost:
        return None
    return {
        "link_id": event.link_id,
        "change_id": event.originator_id,
        "code": event.code,
        "reason": event.reason,
        "plan_ids": [each.plan.plan_id for each in lost],
        "refund_transaction_ids": [each.transaction_id for each in event.refunds],
    }


def _entry(event: Wallet.Moved) -> dict[str, Any]:
    return {
        "transaction_id": event.transaction_id,
        "amount": format_amount(abs(event.amount_micros)),
        "balance": format_amount(event.balance_micros),
        "currency": event.currency,
    }


def _deposited(event: Wallet.Deposited, _: EventContext) -> Facts:
    return _entry(event)


def _low_balance(
    event: Wallet.Charged | Wallet.Adjusted | Organization.LowBalanceThresholdSet,
    context: EventContext,
) -> Facts | None:
    """Tell the entry that took the balance below the threshold, or that it was set above it."""
    if isinstance(event, Organization.LowBalanceThresholdSet):
        return _low_at_once(event)
    lost = event.amount_micros if isinstance(event, Wallet.Charged) else -event.amount_micros
    if lost <= 0:
        return None
    threshold = context.threshold_of(event.organization_id)
    before = event.balance_micros + lost
    if threshold is None or not event.balance_micros < threshold <= before:
        return None
    return {**_entry(event), "threshold": format_amount(threshold)}


def _low_at_once(event: Organization.LowBalanceThresholdSet) -> Facts | None:
    if event.threshold_micros is None or event.balance_micros is None:
        return None
    return {
        "transaction_id": None,
        "amount": None,
        "balance": format_amount(event.balance_micros),
        "currency": event.currency,
        "threshold": format_amount(event.threshold_micros),
    }


def _nothing(_: object, __: EventContext) -> None:
    """Tell nothing."""


def _test(event: WebhookRequest.TestAsked, _: EventContext) -> Facts:
    return {"webhook_id": event.endpoint_id}


TYPES: Mapping[str, tuple[Kinds, FactsOf]] = {
    "job.finished": ((BulkJob.Finished, BulkJob.Cancelled), _job),
    "link.activated": ((Link.Activated,), _activated),
    "link.failed": ((Link.ProvisioningFailed,), _not_activated),
    "link.installed": ((Link.Installed,), _link("installed_at")),
    "link.suspended": ((Link.Suspended,), _link()),
    "link.reactivated": ((Link.Reactivated,), _link()),
    "link.ended": ((Link.Ended,), _link("reason")),
    "link.usage": ((Link.UsageReached,), _link("activation_id", "percent")),
    "link.expiring": ((Link.ExpiryNear,), _link("activation_id", "expires_at")),
    "topup.completed": ((Link.PlanAdded,), _topped_up),
    "topup.failed": ((PlanChange.Failed,), _not_topped_up),
    "wallet.low_balance": (
        (Wallet.Charged, Wallet.Adjusted, Organization.LowBalanceThresholdSet),
        _low_balance,
    ),
    "wallet.deposited": ((Wallet.Deposited,), _deposited),
}
_OF_KIND: Mapping[type[Event], tuple[str, FactsOf]] = {
    WebhookRequest.TestAsked: (TEST, _test),
    **{kind: (name, tell) for name, (kinds, tell) in TYPES.items() for kind in kinds},
}


def kinds_of(types: Collection[str] | None) -> Kinds:
    """Return the kinds of events that cause messages of these types; None: of all types."""
    wanted = TYPES.items() if types is None else ((name, TYPES.get(name)) for name in types)
    return tuple(kind for _, entry in wanted if entry is not None for kind in entry[0])


def type_of(event: Event) -> str | None:
    """Return the type of the message that an event causes; None if it causes none."""
    entry = _OF_KIND.get(type(event))
    return entry[0] if entry is not None else None


def message_of(recorded: Recorded, context: EventContext) -> WebhookMessage | None:
    """Return the message that an event causes; the same event always gives the same bytes."""
    event: Any = recorded.event
    name, tell = _OF_KIND.get(type(event), ("", _nothing))
    facts = tell(event, context)
    if facts is None:
        return None
    about = event.link_id if isinstance(event, PlanChange.Event) else event.originator_id
    body = {
        "type": name,
        "timestamp": _shown(event.timestamp),
        "data": {**facts, "position": recorded.position},
    }
    return WebhookMessage(name, event.organization_id, about, msgspec.json.encode(body))


def _shown(value: object) -> object:
    """Write a moment as the API does: ISO 8601 in UTC with milliseconds."""
    if not isinstance(value, datetime):
        return value
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
