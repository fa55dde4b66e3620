"""Checks that every wallet entry has its reason and every reason its entry, with equal details."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from domain.accounts.paid_price import PaidPrice, RefundReason, Repaying, Repayment
from domain.accounts.wallet import OfAdjustment, OfDeposit, Reference, Wallet
from projections.audit.promises import Promises


class _Words(NamedTuple):
    """Words for a kind of entry: its noun, the noun of its announcer, and its verb."""

    noun: str
    announcer: str
    done: str


WORDS: Mapping[type[Wallet.Moved], _Words] = {
    Wallet.Charged: _Words("charge", "reason", "taken"),
    Wallet.Refunded: _Words("refund", "failure", "given"),
    Wallet.Deposited: _Words("deposit", "payment", "booked"),
    Wallet.Adjusted: _Words("adjustment", "correction", "booked"),
}
NEVER_REFUNDED = {"lookup", "monthly_link_fee"}  # Save by hand; not remembered.


@dataclass(frozen=True, slots=True)
class Reason:
    """Why money moves, and the position of the event that says so; `kind` is that of charges."""

    position: int
    organization_id: UUID
    reference: Reference
    kind: str


@dataclass(frozen=True, slots=True)
class _Entry:
    event: type[Wallet.Moved]
    organization_id: UUID
    amount_micros: int
    reference: Reference
    currency: str | None = None  # None: the currency of the wallet, whatever it is.
    kind: str | None = None
    charge_id: UUID | None = None
    description: str | None = None  # For an adjustment: why it was made.


@dataclass(slots=True)
class _Charge:
    """A charge, and how much of it was refunded."""

    amount_micros: int
    reference: Reference
    refunded_micros: int = 0


class Bookings:
    """The announced entries, due in the commit of their reason, and the charges so far."""

    def __init__(self, promises: Promises) -> None:
        self._promises = promises
        self._charges: dict[UUID, _Charge] = {}
        self._reasons: dict[UUID, RefundReason] = {}  # Of announced refunds, by transaction.
        # Whether every adjustment must have a stream. Those of the first releases had none, but
        # such a log has its ledger after its wallets, if any, and was long over at the first close.
        self.is_recent = False

    def announce_reasons(self, event: Repaying) -> None:
        """Remember the reasons of the refunds that follow in this commit."""
        self._reasons |= event.reasons()

    def announce_charge(self, reason: Reason, price: PaidPrice) -> None:
        entry = _Entry(
            Wallet.Charged,
            reason.organization_id,
            price.amount_micros,
            reason.reference,
            price.currency,
            kind=reason.kind,
        )
        self._announce(reason.position, price.transaction_id, entry)

    def announce_refund(self, reason: Reason, refund: Repayment, price: PaidPrice | None) -> None:
        """Expect a refund; `price` is the charge that it gives back."""
        entry = _Entry(
            Wallet.Refunded,
            reason.organization_id,
            refund.amount_micros,
            reason.reference,
            price.currency if price is not None else None,
            charge_id=price.transaction_id if price is not None else None,
        )
        self._announce(reason.position, refund.transaction_id, entry)

    def announce_booking(self, position: int, event: OfDeposit | OfAdjustment) -> None:
        """Expect the entry of a deposit or a correction."""
        booked: type[Wallet.Moved] = Wallet.Adjusted
        kind, reason = "adjustment", None
        if isinstance(event, OfAdjustment):
            reason = event.reason
        else:
            booked, kind = Wallet.Deposited, event.kind
        owner, reference = event.organization_id, Reference(kind, event.reference)
        entry = _Entry(booked, owner, event.amount_micros, reference, description=reason)
        self._announce(position, event.transaction_id, entry)

    def _announce(self, position: int, transaction_id: UUID, entry: _Entry) -> None:
        words = WORDS[entry.event]
        missing = f"{words.noun} {transaction_id} was announced and not {words.done}"
        self._promises.make(position, transaction_id, entry, missing)

    def charged_micros(self, price: PaidPrice | None) -> int:
        """Return what was charged for a price; 0 when nothing was."""
        charge = self._charges.get(price.transaction_id) if price is not None else None
        return charge.amount_micros if charge is not None else 0

    def forget(self, price: PaidPrice | None) -> None:
        """Forget a charge that can no longer be refunded."""
        if price is not None:
            self._charges.pop(price.transaction_id, None)

    def check(self, event: Wallet.Moved) -> Iterator[str]:
        """Check that an entry was announced, and that refunds do not exceed their charge."""
        is_alone = isinstance(event, Wallet.Adjusted) and event.reference == Reference(
            "adjustment", str(event.transaction_id)
        )
        if is_alone and not self.is_recent:
            return  # Written by an earlier release, which had no stream for adjustments.
        if not self._promises.keep(event.transaction_id, _entry_of(event)):
            words = WORDS[type(event)]
            yield f"{words.noun} {event.transaction_id} has no {words.announcer} that names it"
        if isinstance(event, Wallet.Charged) and event.kind not in NEVER_REFUNDED:
            self._charges[event.transaction_id] = _Charge(event.amount_micros, event.reference)
        elif isinstance(event, Wallet.Refunded):
            yield from self._check_refund(event)

    def _check_refund(self, event: Wallet.Refunded) -> Iterator[str]:
        if event.reason not in {None, self._reasons.pop(event.transaction_id, None)}:
            yield f"refund {event.transaction_id} has another reason than its failure gives"
        charge = self._charges.get(event.charge_id)
        if charge is None and event.reason in {"by_hand", "cancelled"}:
            return  # The charge was forgotten; other rules check this refund by its stream.
        if charge is None or charge.reference != event.reference:
            yield f"refund {event.transaction_id} names no charge of its reason"
            return
        charge.refunded_micros += event.amount_micros
        if charge.refunded_micros > charge.amount_micros:
            yield f"refunds of charge {event.charge_id} exceed it"


def _entry_of(event: Wallet.Moved) -> _Entry:
    return _Entry(
        type(event),
        event.organization_id,
        event.amount_micros,
        event.reference,
        None if isinstance(event, Wallet.Deposited | Wallet.Adjusted) else event.currency,
        kind=event.kind if isinstance(event, Wallet.Charged) else None,
        charge_id=event.charge_id if isinstance(event, Wallet.Refunded) else None,
        description=event.description if isinstance(event, Wallet.Adjusted) else None,
    )
