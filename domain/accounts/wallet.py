"""The wallet of an organization, in micro-units of one currency; its deposits and corrections.

Also the kind under which an entry is listed, and the links that it is about. The warning of a low
balance is a webhook (`domain/webhooks/messages.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
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
PAID_IN = (DEPOSIT, SANDBOX_DEPOSIT, "adjustment")  # Other kinds are charges, or give them back.
# JSON values without personal data, because they are shown and kept for ever.
Metadata = dict[str, Any]


class Reference(msgspec.Struct, frozen=True):
    """What money was for: the type of the thing and its id (or an operator's own text)."""

    type: str
    id: str


class Charge(msgspec.Struct, frozen=True):
    """A debit to be decided by the wallet."""

    transaction_id: UUID
    kind: ChargeKind
    amount_micros: int
    currency: str
    reference: Reference
    description: str
    metadata: Metadata = {}


class Refund(msgspec.Struct, frozen=True):
    """A credit for a charge of something that failed; the failed thing's stream bounds the sum."""

    transaction_id: UUID
    charge_id: UUID
    amount_micros: int
    currency: str
    reference: Reference
    description: str
    reason: RefundReason
    metadata: Metadata = {}


@lru_cache(maxsize=4_096)  # Every charge asks for it.
def wallet_id(organization_id: UUID) -> UUID:
    """Return the stream of the organization's only wallet."""
    return derive_id("wallet", organization_id)


class Wallet(LoadedFromNewest):
    """A balance that is never negative; loading it takes no longer as it ages.

    Every entry names its currency, which must be that of the wallet. Whatever may happen only once
    has a stream of its own with a derived id, saved together with the wallet.
    """

    TOPIC = "wallet"
    OWN = ("organization_id", "currency")

    class Event(Root.Event):
        organization_id: UUID
        currency: str

    class Opened(Event, Created, ByOperator):
        TOPIC = "wallet.opened"
        SETS = sets("organization_id", "currency", balance_micros=0, sequence=0, spending=None)

    class SpendingLimited(Event):
        """The monthly limit was set, with what counts against it; None: no limit.

        This is no entry, so balance and sequence stay. The organization's event says who set it.
        """

        TOPIC = "wallet.spending_limited"
        SETS = sets("balance_micros", "sequence", "spending")

        sequence: int
        balance_micros: int
        spending: Spending | None = field(default=None, kw_only=True)

    class Moved(Event):
        """One entry of the ledger; `balance_micros` and `spending` are those after it."""

        TOPIC = "wallet.moved"  # Never triggered itself, but the library wants a topic.

        sequence: int
        transaction_id: UUID
        amount_micros: int
        balance_micros: int
        reference: Reference
        description: str
        metadata: Metadata
        spending: Spending | None = field(default=None, kw_only=True)  # None: no limit.

        def apply(self, aggregate: "Wallet") -> None:
            aggregate.balance_micros = self.balance_micros
            aggregate.sequence = self.sequence
            aggregate.spending = self.spending

    class Deposited(Moved):
        TOPIC = "wallet.deposited"

    class Adjusted(Moved):
        """A correction by an operator; the only entry whose amount may be negative.

        Earlier releases had no stream for it; then its reference is its own transaction.
        """

        TOPIC = "wallet.adjusted"

    class Charged(Moved):
        TOPIC = "wallet.charged"
        IS_STEP = True

        kind: ChargeKind

    class Refunded(Moved):
        TOPIC = "wallet.refunded"

        charge_id: UUID
        # None in older events; then the event before it in its commit tells the reason.
        reason: RefundReason | None = field(default=None, kw_only=True)

    organization_id: UUID
    currency: str
    balance_micros: int
    sequence: int
    spending: Spending | None

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

    def deposit(self, deposit: "Deposit", currency: str, cause: Cause) -> None:
        """Book a deposit, which has a stream of its own."""
        self._refuse_other_currency(currency)
        self._move(
            self.Deposited,
            cause,
            deposit.amount_micros,
            transaction_id=deposit.transaction_id,
            reference=Reference(type=deposit.kind, id=deposit.reference),
            description="Deposit" if deposit.kind == DEPOSIT else "Sandbox deposit",
            metadata={},
        )

    def adjust(self, adjustment: "Adjustment", currency: str, cause: Cause) -> None:
        """Book a correction, which has a stream of its own; refused below a zero balance."""
        self._refuse_other_currency(currency)
        self._refuse_below_zero(-adjustment.amount_micros)
        self._move(
            self.Adjusted,
            cause,
            adjustment.amount_micros,
            transaction_id=adjustment.transaction_id,
            reference=Reference(type="adjustment", id=adjustment.reference),
            description=adjustment.reason,
            metadata={},
        )

    def charge(self, charge: Charge, cause: Cause) -> None:
        """Take money or refuse, with SpendingLimit or InsufficientBalance; only this decides."""
        assert charge.amount_micros > 0, charge.amount_micros
        self._refuse_other_currency(charge.currency)
        self.refuse_overspending(_chosen_micros([charge]), cause.at)
        self._refuse_below_zero(charge.amount_micros)
        self._move(
            self.Charged,
            cause,
            -charge.amount_micros,
            transaction_id=charge.transaction_id,
            kind=charge.kind,
            reference=charge.reference,
            description=charge.description,
            metadata=charge.metadata,
        )

    def book(self, entries: Sequence[Charge | Refund], cause: Cause) -> None:
        """Make all entries or none; balance and limit must cover the sum of the charges."""
        for entry in entries:
            self._refuse_other_currency(entry.currency)
        charges = [entry for entry in entries if isinstance(entry, Charge)]
        self.refuse_overspending(_chosen_micros(charges), cause.at)
        self._refuse_below_zero(sum(entry.amount_micros for entry in charges))
        for entry in entries:
            if isinstance(entry, Charge):
                self.charge(entry, cause)
            else:
                self.refund(entry, cause)

    def refund(self, refund: Refund, cause: Cause) -> None:
        """Refund a charge of this wallet."""
        assert refund.amount_micros > 0, refund.amount_micros
        self._refuse_other_currency(refund.currency)
        self._move(
            self.Refunded,
            cause,
            refund.amount_micros,
            transaction_id=refund.transaction_id,
            charge_id=refund.charge_id,
            reason=refund.reason,
            reference=refund.reference,
            description=refund.description,
            metadata=refund.metadata,
        )

    def limit_spending(self, spending: Spending | None, cause: Cause) -> None:
        """Set what may be spent in a month, with what has been spent; None ends the limit."""
        self.record(
            self.SpendingLimited,
            cause,
            sequence=self.sequence,
            balance_micros=self.balance_micros,
            spending=spending,
        )

    def refuse_overspending(self, amount_micros: int, at: datetime) -> None:
        """Raise SpendingLimit if an amount would go past the limit of the month, if any."""
        if self.spending is not None and amount_micros:
            self.spending.refuse_beyond(amount_micros, self.currency, at)

    def refuse_unpayable(self, amount_micros: int, currency: str) -> None:
        """Raise ConfigError or InsufficientBalance if it cannot pay an amount now."""
        self._refuse_other_currency(currency)
        self._refuse_below_zero(amount_micros)

    def restore(self, event: Event) -> None:
        """Assign the fields that no entry changes."""
        self.organization_id = event.organization_id
        self.currency = event.currency

    def _refuse_other_currency(self, currency: str) -> None:
        if currency != self.currency:
            raise ConfigError(OTHER_CURRENCY)

    def _refuse_below_zero(self, amount_micros: int) -> None:
        if amount_micros > self.balance_micros:
            raise InsufficientBalance(amount_micros, self.balance_micros, self.currency)

    def _move(self, event: type[Moved], cause: Cause, change_micros: int, **facts: Any) -> None:
        signed = event is self.Adjusted
        paid_in = event in (self.Deposited, self.Adjusted)  # A refund only restores what was there.
        if paid_in and self.balance_micros + change_micros > AMOUNT_MICROS_MAX:
            raise NotPossible("the balance would be larger than a wallet can hold")
        spending = self.spending
        if spending is not None:
            spending = spending.after(0 if paid_in else change_micros, cause.at)
        self.record(
            event,
            cause,
            spending=spending,
            sequence=self.sequence + 1,
            amount_micros=change_micros if signed else abs(change_micros),
            balance_micros=self.balance_micros + change_micros,
            **facts,
        )


def _chosen_micros(charges: Iterable[Charge]) -> int:
    """Return what a limit may refuse; it counts a monthly fee but never refuses it."""
    return sum(each.amount_micros for each in charges if each.kind != "monthly_link_fee")


class OfDeposit(Created):
    """The facts of a deposit, and the kind of its entry."""

    SETS = sets("kind", "organization_id", "reference", "amount_micros", "transaction_id")

    kind: ClassVar[str] = DEPOSIT
    organization_id: UUID
    reference: str
    amount_micros: int
    transaction_id: UUID


class Deposit(Root):
    """One payment into a wallet, once per organization, kind and reference."""

    TOPIC = "deposit"

    class Made(OfDeposit, ByOperator):
        """`proposal` is what another operator has approved; left out: it took one."""

        TOPIC = "deposit.made"

        proposal: UUID | None = field(default=None, kw_only=True)

    class Played(OfDeposit):
        """A partner of a sandbox has given itself play money, for which nobody needs a right."""

        TOPIC = "deposit.played"
        kind = SANDBOX_DEPOSIT

    kind: str
    organization_id: UUID
    reference: str
    amount_micros: int
    transaction_id: UUID

    @classmethod
    def make(  # noqa: PLR0913  # An event is whole: each argument is one of its facts.
        cls,
        organization_id: UUID,
        reference: str,
        amount_micros: int,
        cause: Cause,
        *,
        kind: str = DEPOSIT,
        proposal: UUID | None = None,
    ) -> Self:
        """Record the payment; saved together with the wallet that books it."""
        assert amount_micros > 0, amount_micros
        stream_id = deposit_id(organization_id, reference, kind)
        approved = {} if proposal is None else {"proposal": proposal}
        return cls.begin(
            cls.Made if kind == DEPOSIT else cls.Played,
            cause,
            stream_id,
            organization_id=organization_id,
            reference=reference,
            amount_micros=amount_micros,
            transaction_id=derive_id("transaction", stream_id),
            **approved,
        )


def deposit_id(organization_id: UUID, reference: str, kind: str = DEPOSIT) -> UUID:
    """Return the stream of a deposit; the same reference is the same deposit."""
    return derive_id(kind, organization_id, reference)


class OfAdjustment(ByOperator):
    """The facts of an adjustment; each event that moves or proposes one carries all."""

    SETS = sets("organization_id", "reference", "amount_micros", "reason", "transaction_id")

    organization_id: UUID
    reference: str
    amount_micros: int
    reason: str
    transaction_id: UUID


class Adjustment(Root):
    """One correction of a balance by a signed amount, once per organization and reference.

    Earlier releases let large ones wait on this stream; nobody decides these any more.
    """

    TOPIC = "adjustment"

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

    organization_id: UUID
    reference: str
    amount_micros: int
    reason: str
    transaction_id: UUID
    state: Literal["made", "proposed", "rejected"]

    @classmethod
    def make(  # noqa: PLR0913  # An event is whole: each argument is one of its facts.
        cls,
        organization_id: UUID,
        reference: str,
        amount_micros: int,
        reason: str,
        cause: Cause,
        *,
        proposal: UUID | None = None,
    ) -> Self:
        """Record the correction, saved together with the wallet that it corrects."""
        assert amount_micros != 0, amount_micros
        stream_id = adjustment_id(organization_id, reference)
        return cls.begin(
            cls.Made,
            cause,
            stream_id,
            organization_id=organization_id,
            reference=reference,
            amount_micros=amount_micros,
            reason=reason,
            transaction_id=derive_id("transaction", stream_id),
            proposal=proposal,
        )


def adjustment_id(organization_id: UUID, reference: str) -> UUID:
    """Return the stream of a correction; the same reference is the same correction."""
    return derive_id("adjustment", organization_id, reference)


def kind_and_direction(event: Wallet.Moved) -> tuple[str, str]:
    """Return the kind under which an entry is listed, and whether it takes or gives."""
    match event:
        case Wallet.Charged():
            return event.kind, "debit"
        case Wallet.Refunded():
            return "refund", "credit"
        case Wallet.Deposited():
            is_play = event.reference.type == SANDBOX_DEPOSIT
            return SANDBOX_DEPOSIT if is_play else DEPOSIT, "credit"
        case _:
            return "adjustment", "debit" if event.amount_micros < 0 else "credit"


def kind_refunded(refund: Wallet.Refunded) -> str:
    """Return the kind of the charge that a refund gives back."""
    return CHARGED_FOR.get(refund.reference.type, refund.reference.type)


def links_of(event: Wallet.Moved) -> list[UUID]:
    """Return the links that an entry is about, each once; its metadata names them."""
    if not event.metadata or not isinstance(event, Wallet.Charged | Wallet.Refunded):
        return []
    one, several = event.metadata.get("link_id"), event.metadata.get("charged_link_ids", [])
    named = several if one is None else [one]
    return [*dict.fromkeys(map(UUID, named))]
