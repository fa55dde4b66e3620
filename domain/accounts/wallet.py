"""The wallet of an organization, in micro-units of one currency, and what operators book in it.

Also the kind under which an entry is listed, and the links that it is about. The warning of a low
balance is a webhook (`domain/webhooks/messages.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import date, datetime
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self
from uuid import UUID

import msgspec

from domain.accounts.paid_price import RefundReason
from domain.accounts.spending import Spending
from domain.cause import Cause
from domain.errors import OTHER_CURRENCY, ConfigError, InsufficientBalance, NotPossible
from domain.ids import derive_id
from domain.log.aggregate import ByOperator, Created, LoadedFromNewest, Root, sets
from domain.money import AMOUNT_MICROS_MAX

ChargeKind = Literal["activation", "topup", "monthly_link_fee", "lookup", "bulk_lookup"]
# The type of the thing that was paid for, and the kind of its charge.
CHARGED_FOR: Mapping[str, ChargeKind] = {
    "link": "activation",
    "plan_change": "topup",
    "monthly_fee": "monthly_link_fee",
    "lookup": "lookup",
    "job": "bulk_lookup",
}
# Play money has a kind of its own, so no statement and no account adds it to what was paid in.
DEPOSIT, SANDBOX_DEPOSIT = "deposit", "sandbox_deposit"
# What is booked by itself; other kinds are charges, or give them back.
BOOKED = (DEPOSIT, SANDBOX_DEPOSIT, "adjustment", "reversal", "claim", "payout")
DESCRIBED = {DEPOSIT: "Deposit", SANDBOX_DEPOSIT: "Sandbox deposit"}  # All others have a reason.
# JSON values without personal data, because they are shown and kept for ever.
Metadata = dict[str, Any]


class Reference(msgspec.Struct, frozen=True):
    """What money was for: the type of the thing and its id (or an operator's own text)."""

    type: str
    id: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What every entry says."""

    transaction_id: UUID
    reference: Reference
    description: str
    metadata: Metadata = {}


class Charge(Entry, frozen=True, kw_only=True):
    """A debit to be decided by the wallet."""

    kind: ChargeKind
    amount_micros: int
    currency: str


class Refund(Entry, frozen=True, kw_only=True):
    """A credit for a charge of something that failed; the failed thing's stream bounds the sum."""

    charge_id: UUID
    amount_micros: int
    currency: str
    reason: RefundReason


@lru_cache(maxsize=4_096)  # Every charge asks for it.
def wallet_id(organization_id: UUID) -> UUID:
    return derive_id("wallet", organization_id)


class Wallet(LoadedFromNewest):
    """A balance that is never negative; loading it takes no longer as it ages.

    Every entry names its currency, which must be that of the wallet. Whatever may happen only once
    has a stream of its own with a derived id, saved together with the wallet.

    A reversal that it cannot pay leaves a claim. What comes in settles that first, so the balance
    is zero while a claim is open, and nothing can be bought or paid out.
    """

    TOPIC = "wallet"
    OWN = ("organization_id", "currency")

    class Event(Root.Event):
        organization_id: UUID
        currency: str

    class Opened(Event, Created, ByOperator):
        TOPIC = "wallet.opened"
        SETS = sets("organization_id", "currency")

    class SpendingLimited(Event):
        """The monthly limit was set, with what counts against it; None: no limit.

        This is no entry, so balance and sequence stay. The organization's event says who set it.
        """

        TOPIC = "wallet.spending_limited"
        SETS = sets("balance_micros", "sequence", "spending", "claim_micros")

        sequence: int
        balance_micros: int
        spending: Spending | None = field(default=None, kw_only=True)
        claim_micros: int | None = field(default=None, kw_only=True)

    class Moved(Event):
        """One entry of the ledger; balance, spending and open claim are those after it."""

        TOPIC = "wallet.moved"  # Never triggered itself, but the library wants a topic.
        IS_DEBIT: ClassVar[bool] = False  # What has an amount below zero is one too.

        sequence: int
        transaction_id: UUID
        amount_micros: int
        balance_micros: int
        reference: Reference
        description: str
        metadata: Metadata
        spending: Spending | None = field(default=None, kw_only=True)  # None: no limit.
        claim_micros: int | None = field(default=None, kw_only=True)  # None: no claim.

        def apply(self, aggregate: "Wallet") -> None:
            aggregate.balance_micros = self.balance_micros
            aggregate.sequence = self.sequence
            aggregate.spending = self.spending
            aggregate.claim_micros = self.claim_micros

        @property
        def change_micros(self) -> int:
            """What it adds to the balance."""
            return -self.amount_micros if self.IS_DEBIT else self.amount_micros

    class Deposited(Moved):
        TOPIC = "wallet.deposited"

    class Adjusted(Moved):
        """A correction by an operator; it and a change of a claim may be below zero.

        Earlier releases had no stream for it; then its reference is its own transaction.
        """

        TOPIC = "wallet.adjusted"

    class Charged(Moved):
        TOPIC = "wallet.charged"
        IS_DEBIT = True
        IS_STEP = True

        kind: ChargeKind

    class Refunded(Moved):
        TOPIC = "wallet.refunded"

        charge_id: UUID
        # None in older events; then the event before it in its commit tells the reason.
        reason: RefundReason | None = field(default=None, kw_only=True)

    class Reversed(Moved):
        TOPIC = "wallet.reversed"
        IS_DEBIT = True

    class PaidOut(Moved):
        TOPIC = "wallet.paid_out"
        IS_DEBIT = True

    class ClaimChanged(Moved):
        """What the wallet lacks of the reversal that follows is owed from now on.

        Below zero: the entry before it, whose reference it has, has paid this much of what is owed.
        """

        TOPIC = "wallet.claim_changed"

    organization_id: UUID
    currency: str
    balance_micros: int = 0
    sequence: int = 0
    spending: Spending | None = None
    claim_micros: int | None = None

    @classmethod
    def open(cls, organization_id: UUID, currency: str, cause: Cause) -> Self:
        """Open the wallet, empty; a second one collides, because its id is derived."""
        return cls.begin(
            cls.Opened,
            cause,
            wallet_id(organization_id),
            organization_id=organization_id,
            currency=currency,
        )

    def enter(self, booking: "Booking", currency: str, cause: Cause) -> None:
        """Make the entry of what has a stream of its own; refused below a zero balance.

        What it lacks of a reversal becomes a claim.
        """
        self._refuse_other_currency(currency)
        entry = booking.entry
        kind: type[Wallet.Moved] = getattr(self, booking.ENTRY)
        change_micros = -booking.amount_micros if kind.IS_DEBIT else booking.amount_micros
        lacking_micros = -change_micros - self.balance_micros
        if kind is self.Reversed and lacking_micros > 0:
            self._change_claim(lacking_micros, "claim", entry, cause)
        self._refuse_below_zero(-change_micros)
        self._move(kind, cause, change_micros, entry)

    def book(self, entries: Sequence[Charge | Refund], cause: Cause) -> None:
        """Make all entries or none; balance and limit must cover the sum of the charges.

        Raises SpendingLimit or InsufficientBalance; only this decides.
        """
        for entry in entries:
            assert entry.amount_micros > 0, entry.amount_micros
            self._refuse_other_currency(entry.currency)
        charges = [entry for entry in entries if isinstance(entry, Charge)]
        # A limit counts a monthly fee, but never refuses it.
        chosen = [each.amount_micros for each in charges if each.kind != "monthly_link_fee"]
        self.refuse_overspending(sum(chosen), cause.at)
        self._refuse_below_zero(sum([each.amount_micros for each in charges]))
        for entry in entries:
            micros = entry.amount_micros
            if isinstance(entry, Charge):
                self._move(self.Charged, cause, -micros, entry, kind=entry.kind)
            else:
                more = {"charge_id": entry.charge_id, "reason": entry.reason}
                self._move(self.Refunded, cause, micros, entry, **more)

    def limit_spending(self, spending: Spending | None, cause: Cause) -> None:
        """Set what may be spent in a month, with what has been spent; None ends the limit."""
        self.record(
            self.SpendingLimited,
            cause,
            sequence=self.sequence,
            balance_micros=self.balance_micros,
            spending=spending,
            claim_micros=self.claim_micros,
        )

    def refuse_overspending(self, amount_micros: int, at: datetime) -> None:
        """Raise SpendingLimit if an amount would go past the limit of the month, if any."""
        if self.spending is not None and amount_micros:
            self.spending.refuse_beyond(amount_micros, self.currency, at)

    def refuse_unpayable(self, amount_micros: int, currency: str) -> None:
        """Raise ConfigError or InsufficientBalance if it cannot pay an amount now."""
        self._refuse_other_currency(currency)
        self._refuse_below_zero(amount_micros)

    def _refuse_other_currency(self, currency: str) -> None:
        if currency != self.currency:
            raise ConfigError(OTHER_CURRENCY)

    def _refuse_below_zero(self, amount_micros: int) -> None:
        if amount_micros > self.balance_micros:
            funds = self.balance_micros, self.currency, self.claim_micros or 0
            raise InsufficientBalance(amount_micros, *funds)

    def _move(
        self, event: type[Moved], cause: Cause, change_micros: int, entry: Entry, **facts: Any
    ) -> None:
        counts = event in (self.Charged, self.Refunded)  # A refund only restores what was there.
        if not counts and change_micros > max(0, AMOUNT_MICROS_MAX - self.balance_micros):
            raise NotPossible("the balance would be larger than a wallet can hold")
        spending, claim_micros = self.spending, self.claim_micros or 0
        if spending is not None:
            spending = spending.after(change_micros if counts else 0, cause.at)
        is_claim = event is self.ClaimChanged
        self.record(
            event,
            cause,
            spending=spending,
            sequence=self.sequence + 1,
            amount_micros=-change_micros if event.IS_DEBIT else change_micros,
            balance_micros=self.balance_micros + change_micros,
            claim_micros=claim_micros + (change_micros if is_claim else 0) or None,
            transaction_id=entry.transaction_id,
            reference=entry.reference,
            description=entry.description,
            metadata=entry.metadata,
            **facts,
        )
        settled_micros = min(claim_micros, change_micros)
        if settled_micros > 0 and not is_claim:
            self._change_claim(-settled_micros, "claim_settlement", entry, cause)

    def _change_claim(self, change_micros: int, named: str, beside: Entry, cause: Cause) -> None:
        """Make an entry about what is owed, beside another one."""
        entry = Entry(
            transaction_id=derive_id(named, beside.transaction_id),
            reference=beside.reference,
            description="Claim" if change_micros > 0 else "Claim settled",
        )
        self._move(self.ClaimChanged, cause, change_micros, entry)


class OfBooking(Created):
    """The facts of what is booked by itself, and the kind of its entry."""

    SETS = sets("kind", "organization_id", "reference", "amount_micros", "transaction_id")

    kind: ClassVar[str]
    organization_id: UUID
    reference: str
    amount_micros: int
    transaction_id: UUID


class Booking(Root):
    """Money that a command moves by itself, once per organization, kind and reference."""

    TOPIC: ClassVar[str]
    Made: ClassVar[type["OfBooking"]]
    ENTRY: ClassVar[str]  # The name of its event in `Wallet`; a class would be a second topic.
    FACTS: ClassVar[tuple[str, ...]] = ("reason",)  # What else is known of it, and proposed.

    kind: str
    organization_id: UUID
    reference: str
    amount_micros: int
    transaction_id: UUID

    @classmethod
    def make(  # An event is whole: each argument is one of its facts.
        cls,
        organization_id: UUID,
        reference: str,
        amount_micros: int,
        cause: Cause,
        *,
        event: type["OfBooking"] | None = None,
        **facts: Any,
    ) -> Self:
        """Record it, saved together with its entry; `facts` are those of its event."""
        assert amount_micros > 0 or (amount_micros and cls is Adjustment), amount_micros
        made = event or cls.Made
        stream_id = derive_id(made.kind, organization_id, facts.get("deposit", reference))
        return cls.begin(
            made,
            cause,
            stream_id,
            organization_id=organization_id,
            reference=reference,
            amount_micros=amount_micros,
            transaction_id=derive_id("transaction", stream_id),
            **facts,
        )

    @property
    def entry(self) -> Entry:
        """What its entry says; `DESCRIBED` in place of a reason."""
        facts = {name: getattr(self, name) for name in self.FACTS}
        return Entry(
            transaction_id=self.transaction_id,
            reference=Reference(type=self.kind, id=self.reference),
            description=facts.pop("reason", None) or DESCRIBED[self.kind],
            metadata={name: str(value) for name, value in facts.items()},
        )


class Deposit(Booking):
    """One payment into a wallet, once per organization, kind and reference."""

    TOPIC = "deposit"
    ENTRY = "Deposited"
    FACTS = ()

    class Made(OfBooking, ByOperator):
        """`proposal` is what another operator has approved; left out: it took one."""

        TOPIC = "deposit.made"
        kind = DEPOSIT

        proposal: UUID | None = field(default=None, kw_only=True)

    class Played(OfBooking):
        """A partner of a sandbox has given itself play money, for which nobody needs a right."""

        TOPIC = "deposit.played"
        kind = SANDBOX_DEPOSIT


class OfAdjustment(ByOperator):
    """The facts of an adjustment; each event that moves or proposes one carries all."""

    SETS = sets("kind", "organization_id", "reference", "amount_micros", "reason", "transaction_id")

    kind: ClassVar[str] = "adjustment"
    organization_id: UUID
    reference: str
    amount_micros: int
    reason: str
    transaction_id: UUID


class Adjustment(Booking):
    """One correction of a balance by a signed amount, once per organization and reference.

    Earlier releases let large ones wait on this stream; nobody decides these any more.
    """

    TOPIC = "adjustment"
    ENTRY = "Adjusted"

    class Made(Created, OfAdjustment):
        """`proposal` is what another operator has approved; left out: it took one."""

        TOPIC = "adjustment.made"
        SETS = sets(**OfAdjustment.SETS, state="made")

        proposal: UUID | None = field(default=None, kw_only=True)

    class Proposed(Created, OfAdjustment):
        """Nothing has moved yet."""

        TOPIC = "adjustment.proposed"
        SETS = sets(**OfAdjustment.SETS, state="proposed")

    class Approved(Root.Event, OfAdjustment):
        """Another operator agreed; saved together with the wallet's entry."""

        TOPIC = "adjustment.approved"
        SETS = sets(state="made")

    class Rejected(Root.Event, ByOperator):
        TOPIC = "adjustment.rejected"
        SETS = sets(state="rejected")

    reason: str
    state: Literal["made", "proposed", "rejected"]


class Payout(Booking):
    """One payment to a partner, never of more than the wallet holds; `value_date` is the bank's."""

    TOPIC = "payout"
    ENTRY = "PaidOut"
    FACTS = ("reason", "value_date")

    class Made(OfBooking, ByOperator):
        TOPIC = "payout.made"
        SETS = sets(*OfBooking.SETS, "reason", "value_date")
        kind = "payout"

        reason: str
        value_date: date
        proposal: UUID | None = field(default=None, kw_only=True)

    reason: str
    value_date: date


class Reversal(Booking):
    """A deposit that its payer has taken back, or a part of it; once for each deposit.

    Its stream is named by the deposit, whose reference is `deposit`.
    """

    TOPIC = "reversal"
    ENTRY = "Reversed"
    FACTS = ("reason", "value_date", "deposit")

    class Made(OfBooking, ByOperator):
        TOPIC = "reversal.made"
        SETS = sets(*OfBooking.SETS, "reason", "value_date", "deposit")
        kind = "reversal"

        reason: str
        value_date: date
        deposit: str
        proposal: UUID | None = field(default=None, kw_only=True)

    reason: str
    value_date: date
    deposit: str


BOOKINGS: Mapping[str, type[Booking]] = {
    each.TOPIC: each for each in (Deposit, Adjustment, Reversal, Payout)
}


def kind_of(event: Wallet.Moved) -> str:
    """Return the kind under which an entry is listed."""
    match event:
        case Wallet.Charged():
            return event.kind
        case Wallet.Refunded():
            return "refund"
        case Wallet.ClaimChanged():
            return "claim"
        case _:
            return event.reference.type


def kind_refunded(refund: Wallet.Refunded) -> str:
    return CHARGED_FOR.get(refund.reference.type, refund.reference.type)


def links_of(event: Wallet.Moved) -> list[UUID]:
    """Return the links that an entry is about, each once; its metadata names them."""
    if not event.metadata or not isinstance(event, Wallet.Charged | Wallet.Refunded):
        return []
    one, several = event.metadata.get("link_id"), event.metadata.get("charged_link_ids", [])
    named = several if one is None else [one]
    return [*dict.fromkeys(map(UUID, named))]
