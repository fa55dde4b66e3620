"""The table of webhook types: which events cause each message, and what its body says.

An event may cause messages of several types, which are known by position and type.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, Self
from uuid import UUID

import msgspec

from domain.accounts.organization import ApiClient, Organization
from domain.accounts.wallet import CHARGED_FOR, Wallet
from domain.links.link import Link, LinkState, status_after
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

    def status_before(self, event: Link.Event) -> LinkState:
        """Return the status that a link had before an event; only what it changes is loaded."""
        earlier = self.log.newest_first(event.originator_id, event.originator_version - 1)
        return next(filter(None, map(status_after, earlier)), "inactive")


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
    """Tell the id of the link, and these fields of the event or of its plan."""
    return lambda event, _: {
        "link_id": event.originator_id,
        **{name.rpartition(".")[2]: _shown(attrgetter(name)(event)) for name in names},
    }


def _activated(event: Link.Activated, _: EventContext) -> Facts:
    """Tell the plan of the link; of one that was imported with several, tell all of them."""
    plans = [
        {"activation_id": each.activation_id, "plan_id": each.plan.plan_id}
        for each in event.taken_over
    ]
    more = {"plans": plans} if event.more else {}
    return {"link_id": event.originator_id, **plans[0], **more}


def _status(event: Any, context: EventContext) -> Facts | None:
    """Tell a new status, the one before, and whose doing it was."""
    status, was = status_after(event), context.status_before(event)
    if status == was:
        return None
    match event:
        case Link.Ended():
            by = "end"
        case Link.StatusSeen() | Link.StatusKept():
            by = "network"
        case _:
            by = "partner" if event.actor is None else "operator"
    return {"link_id": event.originator_id, "status": status, "was": was, "by": by}


def _not_activated(event: Link.ProvisioningFailed, _: EventContext) -> Facts:
    refund = event.refund.transaction_id if event.refund is not None else None
    return {
        "link_id": event.originator_id,
        "code": event.code,
        "reason": event.details.get("reason"),
        "refund_transaction_id": refund,
    }


def _not_topped_up(event: PlanChange.Failed, context: EventContext) -> Facts | None:
    """Tell which plans were not added; a change that only removes plans is no top-up."""
    requested = context.log.get(PlanChange, event.originator_id).requested
    lost = requested.additions[max(0, event.index - len(requested.removals)) :]
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


def _entry(event: "Entry | Wallet.Moved") -> dict[str, Any]:
    return {
        "transaction_id": event.transaction_id,
        "amount": format_amount(abs(event.amount_micros)),
        "balance": format_amount(event.balance_micros),
        "currency": event.currency,
    }


def _moved(event: "Entry | Wallet.Moved", _: object = None) -> Facts:
    return {**_entry(event), "sequence": event.sequence}


def _refunded(event: "Entry | Wallet.Refunded", _: object = None) -> Facts:
    return {**_moved(event), "refund_of": event.charge_id}


def _adjusted(event: "Entry | Wallet.Adjusted", _: object = None) -> Facts:
    direction = "debit" if event.amount_micros < 0 else "credit"
    return {**_moved(event), "direction": direction}


def _low_balance(
    event: Wallet.Moved | Organization.LowBalanceThresholdSet, context: EventContext
) -> Facts | None:
    """Tell the entry that took the balance below the threshold, or that it was set above it."""
    if isinstance(event, Organization.LowBalanceThresholdSet):
        if event.threshold_micros is None or event.balance_micros is None:
            return None
        return {
            "transaction_id": None,
            "amount": None,
            "balance": format_amount(event.balance_micros),
            "currency": event.currency,
            "threshold": format_amount(event.threshold_micros),
        }
    lost = -event.change_micros
    if lost <= 0:
        return None
    threshold = context.threshold_of(event.organization_id)
    before = event.balance_micros + lost - (event.claim_micros or 0)  # What is owed was not there.
    if threshold is None or not event.balance_micros < threshold <= before:
        return None
    return {**_entry(event), "threshold": format_amount(threshold)}


def _client(event: ApiClient.SecretRotated | ApiClient.Revoked, _: EventContext) -> Facts | None:
    """Tell which client it is and whose doing it was; machines belong to nobody."""
    if event.organization_id is None:
        return None
    by = "partner" if str(event.actor).startswith("client:") else "operator"
    return {"client_id": event.client_id, "by": by}


DEBITING = (Wallet.Charged, Wallet.Adjusted, Wallet.Reversed, Wallet.PaidOut)
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
    "link.status_changed": (
        (Link.Suspended, Link.Reactivated, Link.StatusSeen, Link.StatusKept, Link.Ended),
        _status,
    ),
    "link.renamed": ((Link.Renamed,), _link()),
    "link.plan_started": ((Link.PlanStarted,), _link("activation_id", "expires_at")),
    "link.plan_ended": ((Link.PlanEnded,), _link("activation_id")),
    "link.plan_removed": ((Link.PlanRemoved,), _link("change_id", "activation_id")),
    "topup.completed": ((Link.PlanAdded,), _link("change_id", "activation_id", "plan.plan_id")),
    "topup.failed": ((PlanChange.Failed,), _not_topped_up),
    "wallet.low_balance": ((*DEBITING, Organization.LowBalanceThresholdSet), _low_balance),
    "wallet.deposited": ((Wallet.Deposited,), _moved),
    "wallet.charged": ((Wallet.Charged,), _moved),
    "wallet.refunded": ((Wallet.Refunded,), _refunded),
    "wallet.adjusted": ((Wallet.Adjusted,), _adjusted),
    "wallet.reversed": ((Wallet.Reversed,), _moved),
    "wallet.claim_changed": ((Wallet.ClaimChanged,), _adjusted),
    "wallet.paid_out": ((Wallet.PaidOut,), _moved),
    "client.secret_rotated": ((ApiClient.SecretRotated,), _client),
    "client.deleted": ((ApiClient.Revoked,), _client),
}
# Messages about entries of wallets, with the kinds of transactions that they are about. Nothing is
# stored for them: whoever reads them makes them from the entry.
OF_ENTRIES: Mapping[str, tuple[Collection[str], Callable[[Any], Facts]]] = {
    "wallet.charged": ((*CHARGED_FOR.values(),), _moved),
    "wallet.refunded": (("refund",), _refunded),
    "wallet.adjusted": (("adjustment",), _adjusted),
    "wallet.reversed": (("reversal",), _moved),
    "wallet.claim_changed": (("claim",), _adjusted),
    "wallet.paid_out": (("payout",), _moved),
}
# Types that came later than the others. They are sent only where an endpoint names them, and their
# ids contain them, because several messages may be about one event.
NAMED_ONLY = frozenset(
    {
        *("link.status_changed", "link.renamed", "link.plan_started", "link.plan_ended"),
        *("link.plan_removed", "client.secret_rotated", "client.deleted", *OF_ENTRIES),
    }
)
PER_EVENT_MAX = 2  # Messages about one event; a test counts them.
# No endpoint names the last one.
_ALL: Mapping[str, tuple[Kinds, FactsOf]] = {
    **TYPES,
    TEST: ((WebhookRequest.TestAsked,), lambda event, _: {"webhook_id": event.endpoint_id}),
}
_OF_KIND: Mapping[type[Event], list[str]] = defaultdict(list)
for _name, (_kinds, _) in _ALL.items():
    for _kind in _kinds:
        _OF_KIND[_kind].append(_name)


class Entry(NamedTuple):
    """An entry of a wallet, with those fields of its event that a message is made of."""

    organization_id: UUID
    position: int
    timestamp: datetime
    transaction_id: UUID
    sequence: int
    amount_micros: int  # Negative if it takes from the balance.
    balance_micros: int
    currency: str
    charge_id: UUID | None

    @classmethod
    def of(cls, recorded: Recorded) -> Self:
        event: Any = recorded.event
        facts: dict[str, Any] = {name: getattr(event, name, None) for name in cls._fields}
        more = {"position": recorded.position, "amount_micros": event.change_micros}
        return cls(**facts | more)


def kinds_of(types: Collection[str] | None) -> Kinds:
    """Return the kinds of events that cause messages of these types.

    None: of all types that are sent without being named.
    """
    wanted = TYPES.keys() - NAMED_ONLY if types is None else types
    found = (kinds for name, (kinds, _) in TYPES.items() if name in wanted)
    return tuple(dict.fromkeys(chain.from_iterable(found)))


def types_of(event: Event) -> list[str]:
    """Return the types of the messages that an event may cause."""
    return _OF_KIND.get(type(event), [])


def messages_of(recorded: Recorded, context: EventContext) -> Iterator[WebhookMessage]:
    """Yield the messages that an event causes, but for those of entries.

    The same event always gives the same bytes.
    """
    event: Any = recorded.event
    for name in types_of(event):
        facts = None if name in OF_ENTRIES else _ALL[name][1](event, context)
        if facts is not None:
            about = event.link_id if isinstance(event, PlanChange.Event) else event.originator_id
            body = _body(name, event.timestamp, facts, recorded.position)
            yield WebhookMessage(name, event.organization_id, about, body)


def body_of_entry(name: str, entry: Entry) -> bytes:
    """Return the body of a message about an entry, which is the same however it was read."""
    return _body(name, entry.timestamp, OF_ENTRIES[name][1](entry), entry.position)


def _body(name: str, at: datetime, facts: Facts, position: int) -> bytes:
    body = {"type": name, "timestamp": _shown(at), "data": {**facts, "position": position}}
    return msgspec.json.encode(body)


def _shown(value: object) -> object:
    """Write a moment as the API does: ISO 8601 in UTC with milliseconds."""
    if not isinstance(value, datetime):
        return value
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
