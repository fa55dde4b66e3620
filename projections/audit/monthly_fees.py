"""Checks that an organization owes one fee a month for its links and is charged for it once."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.wallet import Reference
from projections.audit.bookings import Bookings, Reason


@dataclass
class MonthlyFeeInvariants:
    """Every fee; of a charged fee only its organization and month."""

    _bookings: Bookings
    _open: dict[UUID, MonthlyFee.Due] = field(default_factory=dict)
    _months: set[tuple[UUID, str]] = field(default_factory=set)

    def check(self, position: int, event: MonthlyFee.Due | MonthlyFee.Charged) -> Iterator[str]:
        if isinstance(event, MonthlyFee.Due):
            yield from self._fall_due(event)
            return
        due = self._open.pop(event.originator_id, None)
        if due is None:
            yield f"fee {event.originator_id} is charged before it is due, or twice"
        elif _owed(event) != _owed(due):
            yield f"fee {event.originator_id} is charged otherwise than it is due"
        reference = Reference("monthly_fee", str(event.originator_id))
        reason = Reason(position, event.organization_id, reference, "monthly_link_fee")
        self._bookings.announce_charge(reason, event.price)

    def _fall_due(self, event: MonthlyFee.Due) -> Iterator[str]:
        self._open[event.originator_id] = event
        if (event.organization_id, event.month) in self._months:
            yield f"organization {event.organization_id} owes {event.month} twice"
        self._months.add((event.organization_id, event.month))
        if len(set(event.link_ids)) != len(event.link_ids):
            yield f"fee {event.originator_id} counts a link twice"
        if event.price.amount_micros != len(event.link_ids) * event.fee_micros:
            yield f"fee {event.originator_id} is another sum than that of its links"


def _owed(event: MonthlyFee.Due | MonthlyFee.Charged) -> tuple[object, ...]:
    return event.organization_id, event.month, event.price
