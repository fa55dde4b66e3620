"""What breaks the invariants of adjustments that need approval."""

from typing import Any
from uuid import UUID, uuid4

from domain.accounts.wallet import Adjustment
from domain.cause import Cause
from domain.ids import derive_id
from domain.log.aggregate import Event
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger

ANNA, BERT = f"operator:{uuid4()}", f"operator:{uuid4()}"


def decided(forger: LinkForger, **changes: Any) -> tuple[Event, Event, Event]:
    """A proposal of an earlier release, its approval, perhaps changed, and the entry."""
    at, owner = forger.cause.at, forger.organization_id
    anna, bert = Cause(at, "r-1", ANNA), Cause(at, "r-2", BERT)
    made = waiting(owner, "c-1", anna)
    (proposed,) = made.collect_events()
    names = ("organization_id", "reference", "amount_micros", "reason", "transaction_id")
    made.record(Adjustment.Approved, bert, **{name: getattr(made, name) for name in names})
    (approved,) = made.collect_events()
    forger.wallet.enter(made, "USD", bert)
    (entry,) = forger.wallet.collect_events()
    return proposed, forged(approved, **changes), entry


def waiting(owner: UUID, reference: str, cause: Cause) -> Adjustment:
    """Let a correction wait on its own stream, as earlier releases did."""
    stream_id = Adjustment.id_of(owner, reference)
    return Adjustment.begin(
        Adjustment.Proposed,
        cause,
        stream_id,
        organization_id=owner,
        reference=reference,
        amount_micros=5,
        reason="why",
        transaction_id=derive_id("transaction", stream_id),
    )


def crime(forger: LinkForger, **changes: Any) -> int:
    proposed, approved, entry = decided(forger, **changes)
    forger.write(proposed)
    position = forger.write(approved)
    forger.write(entry)
    return position


def an_approval_of_nothing(forger: LinkForger) -> int:
    _, approved, entry = decided(forger, originator_version=1)
    position = forger.write(approved)
    forger.write(entry)
    return position


NOT_TWO = "is not approved by another operator"
CRIMES: Crimes = [
    (lambda f: crime(f, actor=ANNA), NOT_TWO),
    (an_approval_of_nothing, "decides what nobody has proposed"),
]
