"""The journal of a month for bookkeeping programs: its postings in whole cents, in three formats.

A posting is the difference of two balances in cents: what an account holds by then, less what it
held before. Three charges of 0.4 cents bring an account to 0.4, 0.8 and 1.2, in cents 0, 1 and 1,
so they are postings of 0, 1 and 0. Single postings count so for each organization. On the last day
what is left of each wallet, then of each account, goes to `Rounding`. So every account ends at its
exact balance, rounded once, and nothing is lost from month to month.

The formats are those that docs/finance.md describes, with their sources.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, tzinfo
from decimal import Decimal
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from app.books.postings import (
    BANK,
    CLAIMS,
    DEPOSITS,
    PLAY_MONEY,
    WALLETS,
    opposite_of,
    postings_of,
    wallet_of,
    word_of,
)
from app.books.rates import Rates
from app.books.trial_balance import USES, MonthBalance
from domain.accounts.wallet import CHARGED_FOR, Wallet
from domain.errors import NotPossible
from domain.finance.statement import Month, Months
from domain.log.log import Log
from domain.months import first_instant, last_day
from projections.engine.reader import read_events
from projections.engine.rebuild import Progress, ignore_progress

# What the programs call our accounts, unless an operator says it; and an example for that file.
DEFAULT = Path(__file__).parent / "accounts.json"
# The headings of its 125 columns, of which the first 14 are used.
DATEV = (DEFAULT.parent / "datev.csv").read_text("utf-8").strip()
OWED, ROUNDING = "Liabilities:", "Rounding"
EACH = f"{WALLETS}:*"  # In whose name at a program the number of the customer takes this place.
# Each of these needs an account; those below may have their own.
INCOME = ("Income", "Income:Refunds")
PROVIDERS = ("Expenses:Providers", "Liabilities:Providers")
ROOTS = (DEPOSITS, WALLETS, *INCOME, "Expenses:Adjustments", *PROVIDERS, ROUNDING)
# Without an account of its own play money cannot be booked, least of all as a deposit.
BELOW = [
    PLAY_MONEY,
    CLAIMS,
    BANK,
    *(f"{root}:{word_of(kind)}" for root in INCOME for kind in CHARGED_FOR.values()),
]
Accounts = Mapping[str, Any]  # The file of the operator, as it was read and checked.
K = TypeVar("K")
CENT = 10_000  # In micro-units.
EARLIER = date.min  # The day of what an earlier month has moved.
# Of our own package: a machine may have none, or others, and a folder has to stay the same.
TIME_ZONES = files("tzdata")


class Move(NamedTuple):
    """Micro-units from `other` to `account`, exact, and below zero back: what they were, whose."""

    day: date
    account: str
    other: str
    currency: str
    micros: int
    text: str
    organization_id: UUID | None = None  # None: of several, or of none.

    @property
    def described(self) -> str:
        return f"{self.text} of {self.organization_id}" if self.organization_id else self.text


class Booked(NamedTuple):
    """Whole cents from the account of the credit to that of the debit.

    Those of one number stand together and are one journal, of one day.
    """

    number: str
    debit: str
    credit: str
    cents: int
    move: Move


def moves_of(
    log: Log,
    month: str,
    balance: MonthBalance,
    progress: Progress = ignore_progress,
    time_zone: str = "UTC",
) -> Iterator[Move]:
    """Yield what a closed month, or one before it, has moved, in the order of the log.

    Days are those of the time zone. What counts in the month, but is of a day before or
    after it, has its first or last one; what counts before it is dated `EARLIER`. `text` names
    each. Where a customer has another number than before, what its wallet held goes over to the
    account of the new one.
    """
    months, zone = Months(), _zone(time_zone)
    first, last = first_instant(month).date(), last_day(month)
    numbers = balance.closing.numbers if balance.by_customer else {}
    for whose, (_, currency, micros) in balance.opening.wallets.items() if numbers else ():
        old, new = (wallet_of(its.get(whose)) for its in (balance.opening.numbers, numbers))
        if old != new:
            yield Move(first, new, old, currency, micros, f"Wallet of {whose}")
    for position, event in read_events(log, (*USES, Month.Closed), progress):
        its = months.of(event)
        if months.closed >= month:
            return
        if its > month:
            continue
        day, owner = EARLIER, None
        if its == month:
            day = min(max(event.timestamp.astimezone(zone).date(), first), last)
        if isinstance(event, Wallet.Moved):
            owner = event.organization_id
            wallet = wallet_of(numbers.get(owner))
            pairs = [(opposite_of(event), wallet, str(event.transaction_id))]
        else:
            name = f"position {position}"
            pairs = [(one, other.account, name) for one, other, *_ in postings_of(event)]
        for (account, currency, micros), other, name in pairs:
            text = f"{account.rpartition(':')[2]} {name}"
            yield Move(day, account, other, currency, micros, text, owner)


def _zone(name: str) -> tzinfo:
    with (TIME_ZONES / "zoneinfo" / name).open("rb") as rules:
        return ZoneInfo.from_file(rules, name)


def daily(moves: Iterable[Move]) -> list[Move]:
    """Add up the moves of each day and pair of accounts, in their order."""
    sums: Counter[tuple[date, str, str, str]] = Counter()
    for each in moves:
        sums[each[:4]] += each.micros
    return [Move(*key, micros, f"{key[1]} {key[0]}") for key, micros in sorted(sums.items())]


def book(
    moves: Iterable[Move], balance: MonthBalance, month: str, *, single: bool
) -> Iterator[Booked]:
    """Yield the postings in cents, without those of zero, and the roundings last."""
    balances = Counter[tuple[UUID | None, str, str]]()  # By organization, account and currency.
    # What each wallet holds in cents above its postings.
    owed = Counter[tuple[UUID, str, str]]()
    posted, numbers = Counter[tuple[str, str]](), Counter[str]()

    def post(move: Move, cents: int, number: str) -> Booked:
        posted[move.account, move.currency] += cents
        posted[move.other, move.currency] -= cents
        numbers[move.currency] += 1
        return _booked(
            number or f"{month}-{move.currency}-{numbers[move.currency]:06}", move, cents
        )

    for move in moves:
        owner, currency = move.organization_id, move.currency
        cents = _add(balances, (owner, move.account, currency), move.micros)
        if owner is not None:
            in_wallet = _add(balances, (owner, move.other, currency), -move.micros)
            owed[owner, move.other, currency] += in_wallet + cents if move.day > EARLIER else 0
        if cents and move.day > EARLIER:
            yield post(move, cents, "" if single else f"{move.day}-{currency}")
    last, text = last_day(month), f"Rounding of the wallet {month}"
    for (owner, wallet, currency), due in owed.items():
        if due:
            yield post(Move(last, wallet, ROUNDING, currency, 0, text, owner), due, "")
    for opening, (account, currency, micros) in balance.lines:
        due = in_cents(micros) - in_cents(opening.micros) - posted[account, currency]
        if due:
            text = f"Rounding of {'the wallets' if account == WALLETS else account} {month}"
            move = Move(last, account, ROUNDING, currency, 0, text)
            yield post(move, due, f"{month}-rounding")


def _add(balances: Counter[K], key: K, micros: int) -> int:
    """Add to what is held; return by how many cents that has changed."""
    before = balances[key]
    balances[key] += micros
    return in_cents(before + micros) - in_cents(before)


def _booked(number: str, move: Move, cents: int) -> Booked:
    debit, credit = (move.account, move.other) if cents > 0 else (move.other, move.account)
    return Booked(number, debit, credit, abs(cents), move)


def in_cents(micros: int) -> int:
    """Round to cents, half of one away from zero."""
    cents = (abs(micros) + CENT // 2) // CENT
    return -cents if micros < 0 else cents


def code_of(its: Accounts, account: str) -> str:
    """Return what a program calls an account: by its own name, or the nearest above it.

    A customer whose number makes a code of the file, or for DATEV no personal account, which has a
    digit more than others, has no account of its own.
    """
    accounts, name = its["accounts"], account
    if EACH in accounts and account.startswith(f"{WALLETS}:"):
        own: str = accounts[EACH].replace("*", account.rpartition(":")[2])
        fits = len(own) == its.get("account_length", len(own) - 1) + 1
        if fits and own not in accounts.values():
            return own
    while name and name not in accounts:
        name = name.rpartition(":")[0]
    if not name:
        message = f"the month has postings to {account}, for which the accounts file has no account"
        raise NotPossible(message)
    found: str = accounts[name]
    return found


def of_program(
    booked: Iterable[Booked], currency: str, its: Accounts, rates: Rates | None = None
) -> Iterator[Booked]:
    """Yield the postings in a currency, without those within one account of the program.

    With rates they are in the base of these, and their texts say what they were.
    """
    convert = rates.adding_up() if rates and rates.base != currency else None
    for each in booked:
        move, debit, credit = each.move, *(code_of(its, at) for at in (each.debit, each.credit))
        if move.currency != currency or debit == credit:
            continue
        if rates is None or convert is None:
            yield each
            continue
        cents = each.cents if each.debit == move.account else -each.cents
        if due := convert(f"{move.account} {move.other}", cents, currency, move.day):
            text = f"{_money(each.cents)} {currency}: {move.text}"
            yield _booked(each.number, move._replace(currency=rates.base, text=text), due)


def _money(cents: int, point: str = ".") -> str:
    return f"{Decimal(cents).scaleb(-2):f}".replace(".", point)


def parts(booked: Iterable[Booked], postings_max: int) -> Iterator[list[Booked]]:
    """Divide postings among files of at most so many; a journal stays whole."""
    part: list[Booked] = []
    for _, journal in groupby(booked, attrgetter("number")):
        following = [*journal]
        if part and len(part) + len(following) > postings_max:
            yield part
            part = []
        part += following
    if part:
        yield part


def datev(booked: Sequence[Booked], its: Accounts, made_at: datetime) -> bytes:
    """Write a booking batch: header 700, category 21, format 13, in code page 1252."""
    first = booked[0].move.day.replace(day=1)
    last = last_day(f"{first:%Y-%m}")
    starts = first.replace(month=its["year_begins"])
    starts = starts if starts <= first else starts.replace(year=first.year - 1)
    made = f"{made_at:%Y%m%d%H%M%S}{made_at.microsecond // 1000:03}"
    title, currency = f"Books {first:%Y-%m}", booked[0].move.currency
    whose = f"{its['consultant']};{its['client']};{starts:%Y%m%d};{its['account_length']}"
    head = f'"EXTF";700;21;"Buchungsstapel";13;{made};;"RE";"";"";{whose};{first:%Y%m%d};'
    head += f'{last:%Y%m%d};"{title}";"";1;0;0;"{currency}";;"";;;"";;;"";""'
    lines = [head, DATEV]
    rest = ";" * (DATEV.count(";") - 21)
    for each in booked:
        owner = each.move.organization_id
        info = f'"Organization";"{owner}"' if owner else ";"
        debit, credit = (code_of(its, at) for at in (each.debit, each.credit))
        lines.append(
            f'{_money(each.cents, ",")};"S";"{currency}";;;;{debit};{credit};;{each.move.day:%d%m};'
            f'"{each.number}";;;"{each.move.text[:60]}";;;;;;;{info}{rest}'
        )
    return "".join(f"{line}\r\n" for line in lines).encode("cp1252")


def xero(booked: Sequence[Booked], its: Accounts, _: datetime) -> bytes:
    """Write manual journals, in the columns of Xero's template; a credit is negative."""
    head = ["*Narration", "*Date", "Description", "*AccountCode", "*TaxRate", "*Amount"]
    rows = [head + [f"Tracking{part}{n}" for n in "12" for part in ("Name", "Option")]]
    for each in booked:
        facts = (f"Books {each.number}", f"{each.move.day:%d %b %Y}", each.move.described)
        for account, cents in ((each.debit, each.cents), (each.credit, -each.cents)):
            code = code_of(its, account)
            rows.append([*facts, code, its["tax_rate"], _money(cents), "", "", "", ""])
    return _csv(rows)


def quickbooks(booked: Sequence[Booked], its: Accounts, _: datetime) -> bytes:
    """Write journal entries for QuickBooks Online; a line has a debit or a credit."""
    rows = [["Journal No.", "Journal Date", "Account Name", "Description", "Debits", "Credits"]]
    form = {"MM/DD/YYYY": "%m/%d/%Y", "DD/MM/YYYY": "%d/%m/%Y"}[its["date"]]
    for each in booked:
        facts, amount = (each.number, each.move.day.strftime(form)), _money(each.cents)
        for account, cells in ((each.debit, (amount, "")), (each.credit, ("", amount))):
            rows.append([*facts, code_of(its, account), each.move.described, *cells])
    return _csv(rows)


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    """Write a table. An account begins with no sign of a formula, and all other texts are ours."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


class Form(NamedTuple):
    """How a program takes journals: the name of a file, how much it has at most, its bytes."""

    file: str
    postings_max: int
    write: Callable[[Sequence[Booked], Accounts, datetime], bytes]


FORMS: Mapping[str, Form] = {
    "datev": Form("EXTF_Buchungsstapel", 99_999, datev),
    "xero": Form("xero-manual-journals", 150, xero),  # Of two lines, as in the next.
    "quickbooks": Form("quickbooks-journal-entries", 500, quickbooks),
}
