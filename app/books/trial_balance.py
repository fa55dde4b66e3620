"""The trial balance: every account of the installation, from the log alone in one pass.

The line of the wallets is the sum of the balances in their newest entries; all other lines are sums
of amounts. So the total is zero only if both agree.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.books.postings import COSTLY, WALLETS, Posting, opposite_of, postings_of, work_of
from domain.accounts.wallet import Wallet
from domain.finance.month import Month
from domain.finance.statement import Months
from domain.log.aggregate import Event
from domain.log.log import Log
from domain.money import format_amount
from projections.engine.read_model import Uses
from projections.engine.reader import read_events
from projections.engine.rebuild import Progress, ignore_progress

IN_MONTH = ("account", "currency", "opening", "movement", "closing")
USES: Uses = (Wallet.Moved, *COSTLY)


@dataclass
class TrialBalance:
    """What each account holds; give it the events of `USES` that count, in order."""

    position: int = 0
    unknown: int = 0  # How many works of providers have no known cost.
    _wallets: dict[UUID, Posting] = field(default_factory=dict)
    _sums: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, event: Event) -> None:
        if isinstance(event, Wallet.Moved):
            posting = Posting(WALLETS, event.currency, -event.balance_micros)
            self._wallets[event.originator_id] = posting
            self._post(opposite_of(event))
            return
        for work in work_of(event):
            self.unknown += work.count if work.cost is None else 0
            self._post(*postings_of(work))

    def _post(self, *postings: Posting) -> None:
        for account, currency, micros in postings:
            self._sums[account, currency] += micros

    @property
    def lines(self) -> list[Posting]:
        """What each account holds, by currency and name."""
        sums = self._sums.copy()
        for account, currency, micros in self._wallets.values():
            sums[account, currency] += micros
        found = (Posting(*key, micros) for key, micros in sums.items())
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
    head = log.head()
    position = min(at, head) if isinstance(at, int) else head
    found, later = TrialBalance(position), set[UUID]()  # Wallets that have an entry after `at`.
    for _, event in read_events(log, USES, progress, position):
        if isinstance(at, datetime) and (event.timestamp > at or event.originator_id in later):
            if isinstance(event, Wallet.Moved):
                later.add(event.originator_id)
        else:
            found.add(event)
    return found


class MonthBalance(NamedTuple):
    """The accounts at both ends of a month, by the cut-off of the statements."""

    opening: TrialBalance
    closing: TrialBalance
    is_final: bool

    @property
    def lines(self) -> list[tuple[Posting, Posting]]:
        """What each account holds at the beginning and at the end, by currency and name."""
        before = {line[:2]: line.micros for line in self.opening.lines}
        return [(Posting(*it[:2], before.get(it[:2], 0)), it) for it in self.closing.lines]

    def formatted(self) -> Iterator[dict[str, str]]:
        """Yield the lines as people read them, by the names of `IN_MONTH`."""
        for opening, closing in self.lines:
            amounts = (opening.micros, closing.micros - opening.micros, closing.micros)
            yield dict(zip(IN_MONTH, (*closing[:2], *map(format_amount, amounts)), strict=True))


def month_balance(log: Log, month: str, progress: Progress = ignore_progress) -> MonthBalance:
    """Add up the log to where a month is closed, or to its present end."""
    opening, closing, months = TrialBalance(), TrialBalance(log.head()), Months()
    for position, event in read_events(log, (*USES, Month.Closed), progress, closing.position):
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
