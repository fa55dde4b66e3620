"""Checks that a wallet holds the sum of its entries, never less than zero, and has no gap."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.accounts.currency import Ledger
from domain.accounts.prices import LookupPrice
from domain.accounts.spending import Spending
from domain.accounts.wallet import Wallet
from domain.months import month_of
from projections.audit.bookings import Bookings


@dataclass(slots=True)
class _Wallet:
    """The expected state of a wallet."""

    organization_id: UUID
    currency: str
    balance_micros: int = 0
    sequence: int = 0
    month: str = ""  # Of the newest entry; months never go back.
    spent_micros: int = 0  # In that month.
    limit_micros: int | None = None

    def check_spending(
        self, event: Wallet.Moved | Wallet.SpendingLimited, spent_micros: int
    ) -> Iterator[str]:
        """Check that an event states the limit and spending, and that a charge keeps the limit."""
        month = max(self.month, month_of(event.timestamp))
        self.spent_micros = spent_micros + (self.spent_micros if month == self.month else 0)
        self.month = month
        limit_micros, stated = self.limit_micros, event.spending
        if limit_micros is None:
            expected = None
        else:
            expected = Spending(limit_micros, month, self.spent_micros)
        if stated != expected:
            yield f"wallet {event.originator_id} states another limit, or spending, than it has"
        chosen = isinstance(event, Wallet.Charged) and event.kind != "monthly_link_fee"
        if chosen and limit_micros is not None and self.spent_micros > limit_micros:
            yield f"wallet {event.originator_id} spends more than its limit"


@dataclass
class WalletInvariants:
    """Every wallet, entry by entry."""

    _bookings: Bookings
    _wallets: dict[UUID, _Wallet] = field(default_factory=dict)
    _currency: str | None = None  # Of the ledger or first wallet, so of all.

    def check_currency(
        self, event: Ledger.Opened | Wallet.Opened | LookupPrice.Set
    ) -> Iterator[str]:
        if isinstance(event, Ledger.Opened) and self._currency is None:
            self._bookings.is_recent = True
        if not isinstance(event, LookupPrice.Set):
            self._currency = self._currency or event.currency
        if event.currency != (self._currency or event.currency):
            yield f"{event.currency} is not the currency of this log, which is {self._currency}"

    def check(self, event: Wallet.Event) -> Iterator[str]:
        if isinstance(event, Wallet.Opened):
            wallet = _Wallet(event.organization_id, event.currency)
            self._wallets[event.originator_id] = wallet
            yield from self.check_currency(event)
        elif isinstance(event, Wallet.Moved):
            yield from self._check_entry(event)
        elif isinstance(event, Wallet.SpendingLimited):
            yield from self._check_limit(event)

    def _check_limit(self, event: Wallet.SpendingLimited) -> Iterator[str]:
        wallet = self._wallets.get(event.originator_id)
        if wallet is None:
            yield f"wallet {event.originator_id} is limited before it was opened"
            return
        if (event.balance_micros, event.sequence) != (wallet.balance_micros, wallet.sequence):
            yield f"wallet {event.originator_id} moves where only its limit is set"
        wallet.limit_micros = event.spending.limit_micros if event.spending is not None else None
        yield from wallet.check_spending(event, 0)

    def _check_entry(self, event: Wallet.Moved) -> Iterator[str]:
        wallet = self._wallets.get(event.originator_id)
        if wallet is None:
            yield f"wallet {event.originator_id} moves before it was opened"
            return
        signed = -event.amount_micros if isinstance(event, Wallet.Charged) else event.amount_micros
        wallet.balance_micros += signed
        wallet.sequence += 1
        if event.sequence != wallet.sequence:
            yield f"wallet {event.originator_id} jumps to sequence {event.sequence}"
        if event.balance_micros != wallet.balance_micros:
            yield f"wallet {event.originator_id} states another balance than its entries give"
        counts = isinstance(event, Wallet.Charged | Wallet.Refunded)
        yield from wallet.check_spending(event, -signed if counts else 0)
        if wallet.balance_micros < 0:
            yield f"wallet {event.originator_id} is below zero"
        if (event.organization_id, event.currency) != (wallet.organization_id, wallet.currency):
            yield f"wallet {event.originator_id} changes its organization or currency"
        if not isinstance(event, Wallet.Adjusted) and event.amount_micros <= 0:
            yield f"transaction {event.transaction_id} has no positive amount"
        yield from self._bookings.check(event)
