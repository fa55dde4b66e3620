"""Checks that every id which follows from facts is the one that follows from them.

Such an id lets a thing happen only once: a second one would need the same stream, which is taken.
So under another id it could happen again. Ids of things that clients name by an Idempotency-Key
are not among these, because the log does not hold that key.
"""

from collections.abc import Iterator, Mapping
from uuid import UUID

from eventsourcing.utils import get_topic

from domain.accounts.approvals import ApprovalLimit, Proposal
from domain.accounts.currency import Ledger
from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.operators import Operator
from domain.accounts.organization import ApiClient
from domain.accounts.paid_price import Repayment
from domain.accounts.prices import LookupPrice
from domain.accounts.providers import Provider
from domain.accounts.refund_by_hand import RefundByHand
from domain.accounts.wallet import Adjustment, Deposit, OfAdjustment, OfDeposit, Wallet
from domain.catalogue.plan import SIMULATED
from domain.finance.month import Month
from domain.ids import derive_id
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Created, Event
from domain.log.discontinuity import Discontinuity
from domain.log.origin import LogOrigin
from domain.lookups.bulk_job import BulkJob
from domain.lookups.number_lookup import NumberLookup
from domain.webhooks.endpoint import WebhookList

# The first events of streams whose id is derived: its kind, and the fields that follow it.
STREAMS: Mapping[type[Event], tuple[str, ...]] = {
    Wallet.Opened: ("wallet", "organization_id"),
    Deposit.Made: ("deposit", "organization_id", "reference"),
    Deposit.Played: ("sandbox_deposit", "organization_id", "reference"),
    Adjustment.Made: ("adjustment", "organization_id", "reference"),
    Adjustment.Proposed: ("adjustment", "organization_id", "reference"),
    MonthlyFee.Due: ("monthly_fee", "organization_id", "month"),
    Month.Closed: ("month", "month"),
    Ledger.Opened: ("ledger",),
    Discontinuity.Noticed: ("log.discontinued", "last_position"),
    LogOrigin.Fixed: ("log_origin",),
    Esim.Registered: ("esim", "network", "iccid"),
    LostOrder.Opened: ("lost_order", "link_id"),
    Provider.Registered: ("provider", "name"),
    ApiClient.Registered: ("api_client", "client_id"),
    WebhookList.Opened: ("webhook_list", "organization_id"),
    ApprovalLimit.Opened: ("approval_limit",),
    LookupPrice.Opened: ("price",),
}

Ids = Iterator[tuple[UUID, UUID]]  # What an event has, and what follows from its facts.


class DerivedIds:
    """Every derived id; only operators have to be counted, because theirs are numbers."""

    def __init__(self) -> None:
        self._operators = 0

    def check(self, event: Event) -> Iterator[str]:
        """Check one event against its own facts, and an operator against those before."""
        yield from check_ids(event)
        if isinstance(event, Operator.Registered):
            self._operators += 1
            if event.originator_id != derive_id("operator", self._operators):
                yield f"operator {event.originator_id} does not have the next number"


def check_ids(event: Event) -> Iterator[str]:
    """Check all ids of an event that follow from its own facts."""
    topic, stream = get_topic(type(event)), event.originator_id
    if isinstance(event, Created) and (fault := fault_of_kind(event)):
        yield fault
    if isinstance(event, Created) != (event.originator_version == 1):
        yield f"stream {stream} begins again with {topic}, or in its midst"
    if any(has != follows for has, follows in _stream(event)):
        yield f"{topic} is in stream {stream}, which is not that of its facts"
    for has, follows in (*_paid(event), *_given_back(event)):
        if has != follows:
            yield f"{topic} names {has}, where {follows} follows from its facts"


def fault_of_kind(event: Created) -> str | None:
    """Say that a stream cannot be loaded, because it names another kind than its event has."""
    stream, topic, kind = event.originator_id, get_topic(type(event)), event.originator_topic
    known = kind == topic.partition(".")[0]
    return None if known else f"stream {stream} begins as {kind!r} with {topic}"


def _stream(event: Event) -> Ids:
    if (rule := STREAMS.get(type(event))) is not None:
        kind, *names = rule
        yield event.originator_id, derive_id(kind, *(getattr(event, each) for each in names))
    elif isinstance(event, Link.Imported):
        network = event.plan.network or SIMULATED
        yield event.originator_id, derive_id("imported_link", network, event.iccid)
    elif isinstance(event, Proposal.Made) and event.kind in {"deposit", "adjustment"}:
        of = derive_id(event.kind, event.organization_id, event.reference)
        yield event.originator_id, derive_id("proposal", of)
    elif isinstance(event, Proposal.Made) and event.kind == "refund":
        follows = derive_id("proposal", event.transaction_id, event.reference)
        yield event.originator_id, follows


def _paid(event: Event) -> Ids:
    """Yield the transactions that charge or pay in, and the plans that are bought."""
    stream = event.originator_id
    match event:
        case NumberLookup.Answered() | BulkJob.Created() | Link.Requested() | MonthlyFee.Due():
            if event.price is not None:
                yield event.price.transaction_id, derive_id("transaction", stream)
        case OfDeposit() | OfAdjustment():
            yield event.transaction_id, derive_id("transaction", stream)
        case Link.Activated():
            for index, plan in enumerate(event.taken_over):
                yield plan.activation_id, derive_id("activation", stream, index)
        case PlanChange.Requested():
            for index, each in enumerate(event.additions):
                yield each.activation_id, derive_id("activation", stream, index)
                if each.price is not None:
                    paid = each.price.transaction_id
                    yield paid, derive_id("transaction", each.activation_id)


def _given_back(event: Event) -> Ids:
    """Yield the refunds that follow from their event alone."""
    stream = event.originator_id
    match event:
        case BulkJob.ItemsFailed(refund=Repayment() as refund):
            yield refund.transaction_id, derive_id("refund", stream, min(event.indexes))
        case Link.ProvisioningFailed(refund=Repayment() as refund):
            yield refund.transaction_id, derive_id("refund", stream)
        case Link.Ended() | PlanChange.Returned():
            for back in event.refunds:
                yield back.transaction_id, derive_id("cancellation", back.charge_id)
        case RefundByHand():
            follows = derive_id("refund_by_hand", event.transaction_id, event.reference)
            yield event.refund.transaction_id, follows
