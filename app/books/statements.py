"""Statements and balances from the log alone, in one pass, with one statement for each wallet."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.accounts.wallet import Wallet
from domain.finance.month import Month
from domain.finance.statement import Statement, statement_month
from domain.log.log import Log
from domain.months import next_month
from projections.engine.reader import read_events
from projections.engine.rebuild import Progress, ignore_progress


@dataclass(frozen=True, slots=True)
class MonthsStatements:
    """All statements of one month, and where it was closed; None while it is open."""

    month: str
    closed_at: int | None
    statements: list[Statement]

    @property
    def is_final(self) -> bool:
        """Tell whether no later event can change the statements."""
        return self.closed_at is not None


def statements_of(
    log: Log,
    month: str,
    wanted: UUID | None = None,
    progress: Progress = ignore_progress,
) -> MonthsStatements:
    """Make the statements of a month for all wallets that have an entry up to then.

    `wanted` names an organization if only its statement is. Reading ends where the month is closed.
    """
    book, closed_at = _Book(month), None
    for position, event in read_events(log, (Wallet.Moved, Month.Closed), progress):
        if isinstance(event, Month.Closed):
            book.closed = event.month
            if book.closed >= month:
                closed_at = position
                break
        elif isinstance(event, Wallet.Moved) and wanted in (None, event.organization_id):
            book.enter(position, event)
    return MonthsStatements(month, closed_at, [*book.statements()])


class _Book:
    """The newest statement of each wallet, up to a month."""

    def __init__(self, month: str) -> None:
        self.closed = ""
        self._month = month
        # By int, because UUIDs are hashed by slow Python code.
        self._newest: dict[int, Statement] = {}
        self._past = set[int]()  # Wallets that have an entry in a later month.

    def enter(self, position: int, entry: Wallet.Moved) -> None:
        owner = entry.organization_id.int
        if owner in self._past:
            return
        newest = self._newest.get(owner)
        previous = newest.month if newest is not None else ""
        month = statement_month(entry.timestamp, previous, self.closed)
        if month > self._month:
            self._past.add(owner)
            return
        if newest is None or month > previous:
            newest = self._newest[owner] = Statement.begin(month, entry)
        newest.enter(position, entry)

    def statements(self) -> Iterator[Statement]:
        """Yield the statements of the month; wallets without entries only once it has begun."""
        has_begun = bool(self.closed) and self._month <= next_month(self.closed)
        for newest in self._newest.values():
            if newest.month == self._month:
                yield newest
            elif has_begun or newest.organization_id.int in self._past:
                yield newest.empty_in(self._month)


@dataclass(frozen=True, slots=True)
class Balance:
    """What a wallet held after the entry at a position."""

    organization_id: UUID
    balance_micros: int
    currency: str
    position: int


def balance_of(
    log: Log,
    organization_id: UUID,
    at: datetime | int | None = None,
    progress: Progress = ignore_progress,
) -> Balance | None:
    """Return the balance now, after a position, or at a moment; None while there is no wallet.

    An entry that is dated before its predecessor counts as of the predecessor.
    """
    found = None
    kinds, until = (Wallet.Opened, Wallet.Moved), at if isinstance(at, int) else None
    for position, event in read_events(log, kinds, progress, until):
        if not isinstance(event, kinds) or event.organization_id != organization_id:
            continue
        if isinstance(at, datetime) and event.timestamp > at:
            break
        micros = event.balance_micros if isinstance(event, Wallet.Moved) else 0
        found = Balance(organization_id, micros, event.currency, position)
    return found
