"""Checks that a wallet holds the sum of its entries, never less than zero, and has no gap."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.accounts.ledger import Ledger
from domain.accounts.wallet import Wallet
from projections.audit.bookings import Bookings


@dataclass(slots=True)
class _Ledger:
    """The expected state of a wallet."""

    organization_id: UUID
    currency: str
    balance_micros: int = 0
    sequence: int = 0


@dataclass
class WalletInvariants:
    """Every wallet, entry by entry."""

    _bookings: Bookings
    _ledgers: dict[UUID, _Ledger] = field(default_factory=dict)
    _currency: str | None = None  # That of the first wallet, and so of all.

    def check_currency(self, event: Ledger.Opened | Wallet.Opened) -> Iterator[str]:
        self._currency = self._currency or event.currency
        if event.currency != self._currency:
            yield f"{event.currency} is not the currency of this log, which is {self._currency}"

    def check(self, event: Wallet.Event) -> Iterator[str]:
        if isinstance(event, Wallet.Opened):
            ledger = _Ledger(event.organization_id, event.currency)
            self._ledgers[event.originator_id] = ledger
            yield from self.check_currency(event)
        elif isinstance(event, Wallet.Moved):
            yield from self._check_entry(event)

    def _check_entry(self, event: Wallet.Moved) -> Iterator[str]:
        ledger = self._ledgers.get(event.originator_id)
        if ledger is None:
            yield f"wallet {event.originator_id} moves before it was opened"
            return
        signed = -event.amount_micros if isinstance(event, Wallet.Charged) else event.amount_micros
        ledger.balance_micros += signed
        ledger.sequence += 1
        if event.sequence != ledger.sequence:
            yield f"wallet {event.originator_id} jumps to sequence {event.sequence}"
        if event.balance_micros != ledger.balance_micros:
            yield f"wallet {event.originator_id} states another balance than its entries give"
        if ledger.balance_micros < 0:
            yield f"wallet {event.originator_id} is below zero"
        if (event.organization_id, event.currency) != (ledger.organization_id, ledger.currency):
            yield f"wallet {event.originator_id} changes its organization or currency"
        if not isinstance(event, Wallet.Adjusted) and event.amount_micros <= 0:
            yield f"transaction {event.transaction_id} has no positive amount"
        yield from self._bookings.check(event)
