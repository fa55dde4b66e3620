"""The trial balance: every account of the installation, from the log alone in one pass.

The line of the wallets is the sum of the balances in their newest entries; all other lines are sums
of amounts. So the total is zero only if both agree.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from domain.accounts.wallet import Wallet
from domain.finance.month import Month
from domain.finance.statement import Months
from domain.log.aggregate import Event
from domain.log.log import Log
from projections.audit.accounts import WALLETS, other_side, sides_of
from projections.audit.costs import COSTLY, work_of
from projections.audit.walk import walk
from projections.engine.read_model import Uses
from projections.engine.rebuild import Progress, ignore_progress

USES: Uses = (Wallet.Moved, *COSTLY)


class AccountBalance(NamedTuple):
    """The balance of an account; positive is a debit, negative a credit."""

    account: str
    currency: str
    micros: int


@dataclass
class TrialBalance:
    """The accounts; give it the events of `USES` that count, in order."""

    position: int = 0
    unknown: int = 0  # How many works of providers have no known cost.
    _stated: dict[UUID, tuple[str, int]] = field(default_factory=dict)
    _sums: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, event: Event) -> None:
        if not isinstance(event, Wallet.Moved):
            self._add_work(event)
            return
        self._stated[event.originator_id] = event.currency, event.balance_micros
        account, micros = other_side(event)
        self._sums[account, event.currency] += micros

    def _add_work(self, event: Event) -> None:
        for work in work_of(event):
            if work.cost is None:
                self.unknown += work.count
                continue
            for account, micros in sides_of(work):
                self._sums[account, work.cost.currency] += micros

    @property
    def lines(self) -> list[AccountBalance]:
        """The accounts by currency and name."""
        sums = self._sums.copy()
        for currency, balance_micros in self._stated.values():
            sums[WALLETS, currency] -= balance_micros
        found = (
            AccountBalance(account, currency, micros)
            for (account, currency), micros in sums.items()
        )
        return sorted(found, key=lambda line: (line.currency, line.account))

    @property
    def differences(self) -> dict[str, int]:
        """The sum of all accounts of each currency, which must be zero."""
        sums: Counter[str] = Counter()
        for line in self.lines:
            sums[line.currency] += line.micros
        return dict(sums)


def trial_balance(
    log: Log, at: datetime | int | None = None, progress: Progress = ignore_progress
) -> TrialBalance:
    """Add up the log to its present end, to a position, or to a moment.

    An entry that is dated before its predecessor counts as of the predecessor.
    """
    until, head = at if isinstance(at, int) else None, log.head()
    position = head if until is None else min(until, head)
    found, later = TrialBalance(position), set[UUID]()  # Wallets that have an entry after `at`.
    for _, event in walk(log, USES, progress, position):
        if isinstance(at, datetime) and (event.timestamp > at or event.originator_id in later):
            if isinstance(event, Wallet.Moved):
                later.add(event.originator_id)
        else:
            found.add(event)
    return found


class AccountMonth(NamedTuple):
    """An account in a month; positive is a debit, negative a credit."""

    account: str
    currency: str
    opening_micros: int
    closing_micros: int

    @property
    def movement_micros(self) -> int:
        return self.closing_micros - self.opening_micros


class MonthBalance(NamedTuple):
    """The accounts at both ends of a month, by the cut-off of the statements."""

    opening: TrialBalance
    closing: TrialBalance
    is_final: bool

    @property
    def lines(self) -> list[AccountMonth]:
        """The accounts by currency and name."""
        before = {line[:2]: line.micros for line in self.opening.lines}
        return [
            AccountMonth(*line[:2], before.get(line[:2], 0), line[2]) for line in self.closing.lines
        ]

    @property
    def differences(self) -> dict[str, int]:
        """The sum of all accounts of each currency at the end of the month."""
        return self.closing.differences

    @property
    def unknown(self) -> int:
        """How many works of the month have no known cost."""
        return self.closing.unknown - self.opening.unknown


def month_balance(log: Log, month: str, progress: Progress = ignore_progress) -> MonthBalance:
    """Add up the log to where a month is closed, or to its present end."""
    opening, closing, months = TrialBalance(), TrialBalance(log.head()), Months()
    for position, event in walk(log, (*USES, Month.Closed), progress, closing.position):
        its = months.of(event)
        if isinstance(event, Month.Closed):
            if its >= month:
                closing.position = position
                break
            continue
        if its < month:
            opening.add(event)
        if its <= month:
            closing.add(event)
    return MonthBalance(opening, closing, months.closed >= month)
