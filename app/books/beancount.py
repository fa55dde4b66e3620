"""The log as a ledger of Beancount: double entry, exact to the micro-unit.

An entry is dated within the month of its statement, so the balance asserted at the end of a month
is the closing balance of the statement. What was before the selection is one opening entry.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import chain
from uuid import UUID

from app.books.postings import POSTED, WALLETS, Posting, opposite_of, postings_of
from app.books.reader import Selection
from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet
from domain.finance.statement import Month, Months
from domain.log.aggregate import Event
from domain.log.log import Log, Recorded
from domain.months import month_of, next_month
from projections.engine.read_model import Uses
from projections.engine.reader import read_events
from projections.engine.rebuild import Progress

LEDGER: Uses = (Wallet.Moved, Month.Closed, Organization.Registered, *POSTED)
# Every account opens then, because an entry may be dated before earlier entries of the log.
EPOCH = "1970-01-01"
# The earnings of before the selection; and entries outside of it that stand between its own.
OPENING, LEFT_OUT = "Equity:Opening-Balances", "Equity:Left-Out"


@dataclass(slots=True)
class _Book:
    """The state of one wallet in the ledger."""

    account: str
    currency: str
    written: str = ""  # The statement month of the newest entry that was written.
    balance_micros: int = 0


@dataclass
class Ledger:
    """Give it every event of `LEDGER` in order, from the first one on; it yields the text."""

    selection: Selection
    _books: dict[UUID, _Book] = field(default_factory=dict)
    _names: dict[UUID, str] = field(default_factory=dict)
    _opened: set[str] = field(default_factory=set)
    _months: Months = field(default_factory=Months)
    _before: Counter[tuple[str, str]] = field(default_factory=Counter)  # By account and currency.
    _since: str = EPOCH

    def add(self, recorded: Recorded) -> Iterator[str]:
        position, event = recorded
        month = self._months.of(event)
        match event:
            case Month.Closed():
                pass
            case Organization.Registered():
                self._names[event.originator_id] = event.name
            case Wallet.Moved():
                yield from self._move(position, event, month)
            case _:
                facts = event.organization_id, event.timestamp, position  # type: ignore[attr-defined]  # None of a provider's invoice
                if self.selection.wants(*facts):
                    yield from self._work(position, event, month)
                elif self.selection.starts_after(*facts):
                    self._open_with(*chain.from_iterable(it[:2] for it in postings_of(event)))

    def end(self) -> Iterator[str]:
        """Yield the assertions of the newest month of each wallet, and what there was before."""
        for book in self._books.values():
            yield from _asserted(book)
        postings = [Posting(*key, micros) for key, micros in sorted(self._before.items()) if micros]
        for each in postings:
            yield from self._open(each.account)
        if postings:
            yield _transaction(self._since, "Opening balances", "", *postings)

    def _open_with(self, *postings: Posting) -> None:
        """Count what is before the selection, which begins with what accounts hold then."""
        since = self.selection.since
        if isinstance(since, datetime):
            self._since = since.date().isoformat()
        elif self._months.closed:  # No entry behind it is of an earlier month.
            self._since = f"{next_month(self._months.closed)}-01"
        for account, currency, micros in postings:
            carries = account.startswith(("Assets:", "Liabilities:"))
            self._before[account if carries else OPENING, currency] += micros

    def _move(self, position: int, entry: Wallet.Moved, month: str) -> Iterator[str]:
        organization_id = entry.organization_id
        book = self._books.get(organization_id)
        if book is None:
            account = f"{WALLETS}:{str(organization_id).upper()}"
            book = self._books[organization_id] = _Book(account, entry.currency)
            if len(self._books) == 1:
                yield f'option "operating_currency" "{entry.currency}"\n'
        facts, opposite = (organization_id, entry.timestamp, position), opposite_of(entry)
        if not self.selection.wants(*facts):
            if not book.written and self.selection.starts_after(*facts):
                self._open_with(_of_wallet(book, opposite), opposite)
                book.balance_micros = entry.balance_micros
            return
        if month > book.written:
            yield from _asserted(book)
        book.written = month
        other, currency, micros = opposite
        day, before = _day(entry.timestamp, month), entry.balance_micros - micros
        yield from self._open(book.account, self._names.get(organization_id))
        yield from self._open(other)
        if before != book.balance_micros:
            yield from self._open(LEFT_OUT)
            missing = before - book.balance_micros
            left_out = Posting(LEFT_OUT, currency, missing)
            yield _transaction(day, "Not in this file", "", _of_wallet(book, left_out), left_out)
        links = f" ^{entry.transaction_id}"
        links += f" ^{entry.charge_id}" if isinstance(entry, Wallet.Refunded) else ""
        at = _text(entry.timestamp.isoformat())
        more = f"{links}\n  position: {position}\n  charged_at: {at}"
        yield _transaction(day, entry.description, more, _of_wallet(book, opposite), opposite)
        book.balance_micros = entry.balance_micros

    def _work(self, position: int, event: Event, month: str) -> Iterator[str]:
        day = _day(event.timestamp, month)
        for *postings, text, reference in postings_of(event):
            for each in postings:
                yield from self._open(each.account)
            more = f"\n  position: {position}"
            more += f"\n  reference: {_text(reference)}" if reference else ""
            yield _transaction(day, text, more, *postings)

    def _open(self, account: str, name: str | None = None) -> Iterator[str]:
        if account not in self._opened:
            self._opened.add(account)
            yield f"{EPOCH} open {account}\n" + (f"  name: {_text(name)}\n" if name else "")


def _asserted(book: _Book) -> Iterator[str]:
    """Yield the balance at the end of the month that was written last; exact, hence `~ 0`."""
    if book.written:
        amount = _exact(-book.balance_micros)
        day = f"{next_month(book.written)}-01"  # Beancount checks at the beginning of a day.
        yield f"{day} balance {book.account}  {amount} ~ 0 {book.currency}\n"


def _of_wallet(book: _Book, opposite: Posting) -> Posting:
    return Posting(book.account, opposite.currency, -opposite.micros)


def _transaction(day: str, narration: str, more: str, *postings: Posting) -> str:
    lines = "".join(f"  {name}  {_exact(micros)} {unit}\n" for name, unit, micros in postings)
    return f"{day} * {_text(narration)}{more}\n{lines}"


def _exact(micros: int) -> str:
    """Write six decimals always: tools show as many as most amounts of a currency have."""
    return f"{Decimal(micros).scaleb(-6):f}"


def _day(at: datetime, month: str) -> str:
    return at.date().isoformat() if month_of(at) == month else f"{month}-01"


def _text(words: str) -> str:
    escaped = words.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{" ".join(escaped.split())}"'


def ledger_lines(log: Log, selection: Selection, progress: Progress) -> Iterator[bytes]:
    ledger = Ledger(selection)
    yield b'option "title" "Carrier Lookup, Plans and Links"\n'
    for recorded in read_events(log, LEDGER, progress, selection.last_position):
        for text in ledger.add(recorded):
            yield text.encode()
    for text in ledger.end():
        yield text.encode()
