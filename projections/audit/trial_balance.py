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
    """The accounts; give it every event of `USES` in order. `at`: as they were at this moment.

    An entry that is dated before its predecessor counts as of the predecessor.
    """

    position: int
    at: datetime | None = None
    unknown: int = 0  # How many works of providers have no known cost.
    _later: set[UUID] = field(default_factory=set)  # Wallets that have an entry after `at`.
    _stated: dict[UUID, tuple[str, int]] = field(default_factory=dict)
    _sums: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, event: Event) -> None:
        late = self.at is not None and event.timestamp > self.at
        if not isinstance(event, Wallet.Moved):
            if not late:
                self._add_work(event)
        elif late:
            self._later.add(event.originator_id)
        elif event.originator_id not in self._later:
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
    """Add up the log to its present end, to a position, or to a moment."""
    until, head = at if isinstance(at, int) else None, log.head()
    position = head if until is None else min(until, head)
    found = TrialBalance(position, at if isinstance(at, datetime) else None)
    for recorded in walk(log, USES, progress, position):
        found.add(recorded.event)
    return found
