"""The wallet of an organization, in micro-units of one currency; its deposits and corrections.

What an entry of a wallet is called, and which links it is about.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, Self
from uuid import UUID

import msgspec

from domain.cause import Cause
from domain.errors import OTHER_CURRENCY, ConfigError, InsufficientBalance, NotPossible
from domain.ids import derive_id
from domain.log.aggregate import ByOperator, Created, LoadedFromNewest, Root
from domain.money import AMOUNT_MICROS_MAX

ChargeKind = Literal["activation", "topup", "monthly_link_fee", "lookup", "bulk_lookup"]
Metadata = dict[str, Any]  # JSON values without personal data: it is shown and kept for ever.


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
    """A credit for something that was charged and failed; its stream bounds the sum."""

    transaction_id: UUID
    charge_id: UUID
    amount_micros: int
    currency: str
    reference: Reference
    description: str
    metadata: Metadata = {}


@lru_cache(maxsize=4_096)  # Each charge asks for it.
def wallet_id(organization_id: UUID) -> UUID:
    """Return the stream of the one wallet of an organization."""
    return derive_id("wallet", organization_id)


class Wallet(LoadedFromNewest):
    """A balance that is never negative; its state is O(1) whatever its age.

    Whoever moves it says in which currency: with another than its own nothing is recorded.
    Every "once" is another stream with a derived id that is saved together with the wallet.
    """

    TOPIC = "wallet"

    class Event(Root.Event):
        organization_id: UUID
        currency: str

    class Opened(Event, Created, ByOperator):
        TOPIC = "wallet.opened"

        def apply(self, aggregate: "Wallet") -> None:
            aggregate.organization_id = self.organization_id
            aggregate.currency = self.currency
            aggregate.balance_micros = 0
            aggregate.sequence = 0

    class Moved(Event):
        """One entry of the ledger; `balance_micros` is the balance after it."""

        TOPIC = "wallet.moved"  # Never triggered itself, but the library asks for a topic.

        sequence: int
        transaction_id: UUID
        amount_micros: int
        balance_micros: int
        reference: Reference
        description: str
        metadata: Metadata

        def apply(self, aggregate: "Wallet") -> None:
            aggregate.balance_micros = self.balance_micros
            aggregate.sequence = self.sequence

    class Deposited(Moved):
        TOPIC = "wallet.deposited"

    class Adjusted(Moved):
        """A correction by an operator; the one entry whose amount may be negative.

        Earlier releases kept no stream for it: its reference is then its own transaction.
        """

        TOPIC = "wallet.adjusted"

    class Charged(Moved):
        TOPIC = "wallet.charged"
        IS_STEP = True

        kind: ChargeKind

    class Refunded(Moved):
        TOPIC = "wallet.refunded"

        charge_id: UUID

    organization_id: UUID
    currency: str
    balance_micros: int
    sequence: int

    @classmethod
    def open(cls, organization_id: UUID, currency: str, cause: Cause) -> Self:
        """Open the wallet, empty; the derived id makes a second one collide."""
        return cls.begin(
            cls.Opened,
            cause,
            wallet_id(organization_id),
            organization_id=organization_id,
            currency=currency,
        )

    def deposit(self, deposit: "Deposit", currency: str, cause: Cause) -> None:
        """Take in a deposit that has its own stream."""
        self._refuse_other_currency(currency)
        self._move(
            self.Deposited,
            cause,
            deposit.amount_micros,
            transaction_id=deposit.transaction_id,
            reference=Reference(type="deposit", id=deposit.reference),
            description="Deposit",
            metadata={},
        )

    def adjust(self, adjustment: "Adjustment", currency: str, cause: Cause) -> None:
        """Book a correction that has its own stream; refuses what would make it negative."""
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
        """Take money, or refuse with InsufficientBalance: the only place that decides it."""
        assert charge.amount_micros > 0, charge.amount_micros
        self._refuse_other_currency(charge.currency)
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

    def charge_all(self, charges: Sequence[Charge], cause: Cause) -> None:
        """Take all of it or refuse all of it: the sum has to be there."""
        self._refuse_below_zero(sum(charge.amount_micros for charge in charges))
        for charge in charges:
            self.charge(charge, cause)

    def refund_all(self, refunds: Sequence[Refund], cause: Cause) -> None:
        """Give several charges back."""
        for refund in refunds:
            self.refund(refund, cause)

    def refund(self, refund: Refund, cause: Cause) -> None:
        """Give money back for a charge of this wallet."""
        assert refund.amount_micros > 0, refund.amount_micros
        self._refuse_other_currency(refund.currency)
        self._move(
            self.Refunded,
            cause,
            refund.amount_micros,
            transaction_id=refund.transaction_id,
            charge_id=refund.charge_id,
            reference=refund.reference,
            description=refund.description,
            metadata=refund.metadata,
        )

    def restore(self, event: Event) -> None:
        """Assign what no entry changes."""
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
            message = "the balance would be larger than a wallet can hold"
            raise NotPossible(message)
        self.record(
            event,
            cause,
            organization_id=self.organization_id,
            currency=self.currency,
            sequence=self.sequence + 1,
            amount_micros=change_micros if signed else abs(change_micros),
            balance_micros=self.balance_micros + change_micros,
            **facts,
        )


class Deposit(Root):
    """One payment into a wallet, once per organization and reference."""

    TOPIC = "deposit"

    class Made(Created, ByOperator):
        TOPIC = "deposit.made"

        organization_id: UUID
        reference: str
        amount_micros: int
        transaction_id: UUID

        def apply(self, aggregate: "Deposit") -> None:
            aggregate.organization_id = self.organization_id
            aggregate.reference = self.reference
            aggregate.amount_micros = self.amount_micros
            aggregate.transaction_id = self.transaction_id

    organization_id: UUID
    reference: str
    amount_micros: int
    transaction_id: UUID

    @classmethod
    def make(cls, organization_id: UUID, reference: str, amount_micros: int, cause: Cause) -> Self:
        """Record the payment; saved together with the wallet that takes it in."""
        assert amount_micros > 0, amount_micros
        stream_id = deposit_id(organization_id, reference)
        return cls.begin(
            cls.Made,
            cause,
            stream_id,
            organization_id=organization_id,
            reference=reference,
            amount_micros=amount_micros,
            transaction_id=derive_id("transaction", stream_id),
        )


def deposit_id(organization_id: UUID, reference: str) -> UUID:
    """Return the stream of a deposit: the same reference again is the same deposit."""
    return derive_id("deposit", organization_id, reference)


class Adjustment(Root):
    """One correction of a balance by a signed amount, once per organization and reference."""

    TOPIC = "adjustment"

    class Made(Created, ByOperator):
        TOPIC = "adjustment.made"

        organization_id: UUID
        reference: str
        amount_micros: int
        reason: str
        transaction_id: UUID

        def apply(self, aggregate: "Adjustment") -> None:
            aggregate.organization_id = self.organization_id
            aggregate.reference = self.reference
            aggregate.amount_micros = self.amount_micros
            aggregate.reason = self.reason
            aggregate.transaction_id = self.transaction_id

    organization_id: UUID
    reference: str
    amount_micros: int
    reason: str
    transaction_id: UUID

    @classmethod
    def make(
        cls, organization_id: UUID, reference: str, amount_micros: int, reason: str, cause: Cause
    ) -> Self:
        """Record the correction; saved together with the wallet that it corrects."""
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
        )


def adjustment_id(organization_id: UUID, reference: str) -> UUID:
    """Return the stream of a correction: the same reference again is the same correction."""
    return derive_id("adjustment", organization_id, reference)


def kind_and_direction(event: Wallet.Moved) -> tuple[str, str]:
    """Return what an entry is called in the stream and whether it takes or gives."""
    match event:
        case Wallet.Charged():
            return event.kind, "debit"
        case Wallet.Refunded():
            return "refund", "credit"
        case Wallet.Deposited():
            return "deposit", "credit"
        case _:
            return "adjustment", "debit" if event.amount_micros < 0 else "credit"


def links_of(event: Wallet.Moved) -> list[UUID]:
    """Return the links that an entry is about, each once; its metadata name them."""
    if not event.metadata or not isinstance(event, Wallet.Charged | Wallet.Refunded):
        return []
    one, several = event.metadata.get("link_id"), event.metadata.get("charged_link_ids", [])
    named = several if one is None else [one]
    return [*dict.fromkeys(map(UUID, named))]
