"""The trial balance: every account of the installation, from the log alone in one pass.

The line of the wallets is the sum of the balances in their newest entries; all other lines are sums
of amounts. So the total is zero only if both agree.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.books.postings import (
    POSTED,
    WALLETS,
    Posting,
    opposite_of,
    postings_of,
    wallet_of,
    work_of,
)
from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet
from domain.finance.statement import Month, Months
from domain.log.aggregate import Event
from domain.log.log import Log
from domain.money import format_amount
from projections.engine.read_model import Uses
from projections.engine.reader import read_events
from projections.engine.rebuild import Progress, ignore_progress

IN_MONTH = ("account", "currency", "opening", "movement", "closing")
USES: Uses = (Wallet.Moved, *POSTED)


@dataclass
class TrialBalance:
    """What each account holds; give it the events of `USES` that count, in order."""

    position: int = 0
    unknown: int = 0  # How many works of providers have no known cost.
    numbers: Mapping[UUID, str | None] = field(default_factory=dict)  # Of customers.
    wallets: dict[UUID, Posting] = field(default_factory=dict)
    _sums: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, event: Event) -> None:
        if isinstance(event, Wallet.Moved):
            posting = Posting(WALLETS, event.currency, -event.balance_micros)
            self.wallets[event.organization_id] = posting
            self._post(opposite_of(event))
            return
        for work in work_of(event):
            self.unknown += work.count if work.cost is None else 0
        for one, other, *_ in postings_of(event):
            self._post(one, other)

    def _post(self, *postings: Posting) -> None:
        for account, currency, micros in postings:
            self._sums[account, currency] += micros

    @property
    def lines(self) -> list[Posting]:
        """What each account holds, by currency and name; all wallets are one."""
        return self.lines_of({})

    def lines_of(self, numbers: Mapping[UUID, str | None]) -> list[Posting]:
        """Return the same with an account for the wallets of each number."""
        sums = self._sums.copy()
        for owner, (_, currency, micros) in self.wallets.items():
            sums[wallet_of(numbers.get(owner)), currency] += micros
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
    by_customer: bool = False  # Whether each number has an account of its own.

    @property
    def lines(self) -> list[tuple[Posting, Posting]]:
        """What each account holds at the beginning and at the end, by currency and name."""
        before, after = (
            {line[:2]: line for line in it.lines_of(it.numbers if self.by_customer else {})}
            for it in (self.opening, self.closing)
        )
        keys = sorted(before | after, key=lambda key: (key[1], key[0]))
        none = {key: Posting(*key, 0) for key in keys}
        return [(before.get(key, none[key]), after.get(key, none[key])) for key in keys]

    def formatted(self) -> Iterator[dict[str, str]]:
        """Yield the lines as people read them, by the names of `IN_MONTH`."""
        for opening, closing in self.lines:
            amounts = (opening.micros, closing.micros - opening.micros, closing.micros)
            yield dict(zip(IN_MONTH, (*closing[:2], *map(format_amount, amounts)), strict=True))


def month_balance(log: Log, month: str, progress: Progress = ignore_progress) -> MonthBalance:
    """Add up the log to where a month is closed, or to its present end."""
    opening, closing, months = TrialBalance(), TrialBalance(log.head()), Months()
    uses: Uses = (*USES, Month.Closed, Organization.CustomerNumberSet)
    for position, event in read_events(log, uses, progress, closing.position):
        if isinstance(event, Organization.CustomerNumberSet):
            closing.numbers = {**closing.numbers, event.originator_id: event.customer_number}
            continue
        its = months.of(event)
        if isinstance(event, Month.Closed):
            if its >= month:
                closing.position = position
                break
            opening.numbers = closing.numbers
            continue
        if its < month:
            opening.add(event)
        if its <= month:
            closing.add(event)
    return MonthBalance(opening, closing, months.closed >= month)
