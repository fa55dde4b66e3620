"""Statements and balances from the log alone, in one pass, with one statement for each wallet."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from domain.accounts.wallet import Wallet
from domain.finance.statement import Month, Months, Statement
from domain.log.log import Log
from domain.money import format_amount
from domain.months import next_month
from projections.engine.reader import read_events
from projections.engine.rebuild import Progress, ignore_progress
from projections.engine.shape import Shape


class MonthsStatements(NamedTuple):
    """All statements of one month, final once it is closed; `closed_at` is None before."""

    month: str
    closed_at: int | None
    statements: list[Statement]


def statements_of(
    log: Log, month: str, wanted: UUID | None = None, progress: Progress = ignore_progress
) -> MonthsStatements:
    """Make the statements of a month for all wallets that have an entry up to then.

    `wanted` names an organization if only its statement is. Reading ends where the month is closed.
    """
    newest, past = dict[UUID, Statement](), set[UUID]()  # Past: with an entry in a later month.
    months, closed_at = Months(), None
    for position, event in read_events(log, (Wallet.Moved, Month.Closed), progress):
        its = months.of(event)
        if isinstance(event, Month.Closed):
            if its >= month:
                closed_at = position
                break
        elif isinstance(event, Wallet.Moved) and wanted in (None, event.organization_id):
            owner = event.organization_id
            if its > month:
                past.add(owner)
                continue
            if owner not in newest or newest[owner].month < its:
                newest[owner] = Statement.begin(its, event)
            newest[owner].enter(position, event)
    # A wallet without entries has a statement only once the month has begun.
    has_started = bool(months.closed) and month <= next_month(months.closed)
    found = [
        each if each.month == month else each.empty_in(month)
        for owner, each in newest.items()
        if each.month == month or has_started or owner in past
    ]
    return MonthsStatements(month, closed_at, found)


class Balance(Shape):
    """What a wallet held after the entry at a position."""

    organization: UUID
    balance: str
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
        found = Balance(organization_id, format_amount(micros), event.currency, position)
    return found
