"""Checks deposits and adjustments: each proposal is decided once, and not by its proposer."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.accounts.wallet import Adjustment, OfAdjustment, OfDeposit
from projections.audit.bookings import Bookings
from projections.audit.operators import OperatorInvariants


@dataclass
class AdjustmentInvariants:
    """Every open proposal; announces the entries of deposits and adjustments."""

    _bookings: Bookings
    _operators: OperatorInvariants
    _open: dict[UUID, Adjustment.Proposed] = field(default_factory=dict)

    def check(
        self, position: int, event: OfDeposit | OfAdjustment | Adjustment.Rejected
    ) -> Iterator[str]:
        stream = event.originator_id
        if isinstance(event, Adjustment.Proposed):
            self._open[stream] = event
            return
        if not isinstance(event, Adjustment.Rejected):
            self._bookings.announce_booking(position, event)
        if isinstance(event, OfDeposit | Adjustment.Made):
            return
        proposed = self._open.pop(stream, None)
        if proposed is None:
            yield f"adjustment {stream} is decided before it is proposed, or twice"
        elif isinstance(event, Adjustment.Approved):
            if _facts(event) != _facts(proposed):
                yield f"adjustment {stream} is approved otherwise than it was proposed"
            if not self._operators.are_two(proposed.actor, event.actor):
                yield f"adjustment {stream} is not approved by another operator"


def _facts(event: OfAdjustment) -> tuple[object, ...]:
    facts = event.organization_id, event.reference, event.amount_micros, event.reason
    return *facts, event.transaction_id
