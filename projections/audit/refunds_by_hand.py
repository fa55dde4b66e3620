"""Checks that refunds by hand give back no more than is left of the charge that they name.

Such refunds are few and come at any time, while there are many charges. So charges are not
remembered for them; the check reads the stream of the refund again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.paid_price import PaidPrice, Repayment
from domain.accounts.refund_by_hand import RefundByHand
from domain.accounts.wallet import Reference
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.lookups.bulk_job import BulkJob
from domain.lookups.number_lookup import NumberLookup
from projections.audit.bookings import Bookings, Reason

History = Callable[[UUID, int | None], Sequence[Event]]  # Reads a stream, up to a version.
REFERENCES: dict[type[Event], str] = {
    NumberLookup.RefundedByHand: "lookup",
    BulkJob.RefundedByHand: "job",
    Link.RefundedByHand: "link",
    PlanChange.RefundedByHand: "plan_change",
    MonthlyFee.RefundedByHand: "monthly_fee",
}


@dataclass
class RefundByHandInvariants:
    """Every refund by hand, checked against the earlier events of its stream."""

    _bookings: Bookings
    _history: History

    def check(self, position: int, event: RefundByHand) -> Iterator[str]:
        stream = event.originator_id
        before = self._history(stream, event.originator_version - 1)
        if len(before) != event.originator_version - 1:
            yield f"stream {stream} jumps to version {event.originator_version}"
        price, left_micros = left_of(before, event.transaction_id)
        if price is None or event.refund.amount_micros > left_micros:
            yield f"refund {event.refund.transaction_id} by hand exceeds what is left of its charge"
        if (event.transaction_id, event.reference) in _references(before):
            yield f"refund {event.refund.transaction_id} by hand is given again under one reference"
        has_ended = any(_has(before, each) for each in (BulkJob.Finished, BulkJob.Cancelled))
        if isinstance(event, BulkJob.RefundedByHand) and not has_ended:
            yield f"job {stream} is refunded by hand before its end"
        if {event.organization_id} != {getattr(e, "organization_id", None) for e in before}:
            yield f"refund {event.refund.transaction_id} by hand is for another organization"
        reference = Reference(REFERENCES[type(event)], str(stream))
        reason = Reason(position, event.organization_id, reference, "by_hand")
        self._bookings.announce_refund(reason, event.refund, price)


def _has(history: Sequence[Event], kind: type[Event]) -> bool:
    return any(isinstance(each, kind) for each in history)


def _references(history: Sequence[Event]) -> set[tuple[UUID, str]]:
    by_hand = (each for each in history if isinstance(each, RefundByHand))
    return {(each.transaction_id, each.reference) for each in by_hand}


def _named(event: Event) -> list[tuple[UUID, int]]:
    """Return the refunds of an event that name their charge: charge and amount."""
    if isinstance(event, RefundByHand):
        return [(event.transaction_id, event.refund.amount_micros)]
    if isinstance(event, Link.Ended | PlanChange.Returned):
        return [(each.charge_id, each.amount_micros) for each in event.refunds]
    return []


def left_of(history: Sequence[Event], charge_id: UUID) -> tuple[PaidPrice | None, int]:
    """Return a charge, and what is left of it after all events of its stream."""
    prices: dict[UUID, PaidPrice] = {}
    back_micros: dict[UUID, int] = defaultdict(int)
    for event in history:
        for named, amount_micros in _named(event):
            back_micros[named] += amount_micros
        if isinstance(event, PlanChange.Requested):
            prices |= {e.price.transaction_id: e.price for e in event.additions if e.price}
        elif isinstance(event, PlanChange.Failed):  # It refunds the last charges in full.
            for paid, refund in zip(reversed(prices), reversed(event.refunds), strict=False):
                back_micros[paid] += refund.amount_micros
        elif not isinstance(event, MonthlyFee.Due | RefundByHand):  # Its charge comes later.
            for value in vars(event).values():
                if isinstance(value, PaidPrice):
                    prices[value.transaction_id] = value
                elif isinstance(value, Repayment):  # Such a stream has one charge.
                    back_micros[next(iter(prices), charge_id)] += value.amount_micros
    taken = (Link.EsimReserved, Link.OrderRequested)  # In the commit of the charge.
    is_charged = not _has(history, Link.Began) or any(_has(history, each) for each in taken)
    price = prices.get(charge_id) if is_charged else None
    return price, (price.amount_micros if price is not None else 0) - back_micros[charge_id]
