"""A reconciliation: compares the amounts of a file from outside with those of the log.

The file is a provider's invoice or a bank's statement: CSV in UTF-8, with a byte order mark or
without, or in UTF-16 with one, unless the caller names the encoding. Lines may come before the
head, which is the first line that has the wanted columns. The separator (semicolon, comma or tab)
is the first one that yields such a line. `1.234,56`, `1,234.56`, `1'234.56` and `12.50-` are
amounts; the file as a whole decides whether its decimals follow a point or a comma.
"""

import codecs
import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Literal, get_args
from uuid import UUID

from app.books.postings import COSTLY, LEFT_OVER, work_of
from domain.accounts.wallet import SANDBOX_DEPOSIT, Wallet
from domain.catalogue.file_errors import FileRefused
from domain.errors import NotPossible
from domain.finance.settlement import Booking, Settled, Settlement
from domain.log.log import Log
from domain.money import AMOUNT_MICROS_MAX, CURRENCIES, MICROS
from domain.months import month_of
from projections.engine.reader import read_events
from projections.engine.rebuild import Progress, ignore_progress

FILE_BYTES_MAX = 32 * 1024 * 1024
ERRORS_MAX = 20  # Errors in one report; if there are more, they probably have one cause.
_WORD = re.compile(r"[^\W_]+")
_WITH_POINTS = re.compile(r"([0-9]{2})\.([0-9]{2})\.([0-9]{4})\Z", re.ASCII)
SEPARATORS = (";", ",", "\t")

Period = Literal["day", "month"]
BANKED = (Wallet.Deposited, Wallet.Reversed, Wallet.PaidOut, Settlement.Booked)
NOTHING = Settled()
LENGTHS: dict[Period, int] = {"day": len("2026-01-31"), "month": len("2026-01")}

Mark = Literal["point", "comma"]
Row = tuple[int, list[str]]  # The number of the line, from 1, and its values.
_Key = tuple[str, int | None]  # A reference, with its amount if several owners share it.


@dataclass(frozen=True)
class Layout:
    """Where the values are; without a column for it, all amounts are in `currency`.

    Names of columns are compared without case, spaces and underscores. `only` is a column and its
    value: lines with another value are left out. Without a column of dates all have `value_date`.
    """

    currency: str
    currency_column: str | None = None
    reference: str = "reference"
    amount: str = "amount"
    decimal: Mark | None = None  # None: the amounts of the file show it.
    encoding: str | None = None
    only: tuple[str, str] | None = None
    date_column: str | None = None
    value_date: date | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that the head must have, as `read_amounts` takes their values."""
        named = [self.reference, self.amount, self.currency_column, self.date_column]
        return [each for each in (*named, (self.only or (None,))[0]) if each is not None]


@dataclass(frozen=True, slots=True)
class Theirs:
    """One line of the file, or the sum of several lines of one reference."""

    line: int
    reference: str
    amount_micros: int
    currency: str
    value_date: date | None = None


def read_amounts(data: bytes, layout: Layout) -> list[Theirs]:
    """Read every line that has a reference or an amount; raises FileRefused with all reasons."""
    if len(data) > FILE_BYTES_MAX:
        raise FileRefused([f"is larger than {FILE_BYTES_MAX} bytes"])
    rows, columns = _body(_text(data, layout.encoding), layout)
    found: list[tuple[int, list[str]]] = []
    for line, row in rows:
        values = [row[column].strip() if column < len(row) else "" for column in columns]
        if layout.only is not None and values.pop() != layout.only[1]:
            continue
        if values[0] or values[1]:
            found.append((line, values))
    amounts = _amounts([(line, values[1]) for line, values in found], layout)
    days, its_own = [layout.value_date] * len(found), layout.currency_column is not None
    if layout.date_column is not None:
        dated = ((line, values[-1]) for line, values in found)
        days = [*dates_in(dated, f", column {layout.date_column}")]
    return [
        Theirs(line, values[0], amount, values[2].upper() if its_own else layout.currency, day)
        for (line, values), amount, day in zip(found, amounts, days, strict=True)
    ]


def _text(data: bytes, encoding: str | None) -> str:
    if encoding is None:
        wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if wide else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        message = f"is not {error.encoding}: see byte {error.start}; --encoding names another one"
    except (LookupError, UnicodeError):
        message = f"there is no encoding {encoding}"
    raise FileRefused([message])


def _body(text: str, layout: Layout) -> tuple[list[Row], list[int]]:
    wanted = [_plain(each) for each in layout.columns]
    for separator in SEPARATORS:
        rows = rows_in(text, separator)
        for index, (_, row) in enumerate(rows):
            head = [_plain(cell) for cell in row]
            if all(head.count(each) == 1 for each in wanted):
                _check_width(rows[index + 1 :], len(head))
                return rows[index + 1 :], [head.index(each) for each in wanted]
    columns = ", ".join(map(repr, layout.columns))
    raise FileRefused([f"no line has each of {columns} once: options such as --amount name them"])


def _plain(name: str) -> str:
    """Normalize the name of a column: `start_date`, `StartDate` and `Start date` are equal."""
    return re.sub(r"[\s_]", "", name.casefold())


def rows_in(text: str, separator: str) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise FileRefused([f"line {reader.line_num}: {error}"]) from None


def _check_width(rows: Sequence[Row], width: int) -> None:
    """Refuse lines with more values than columns: a decimal comma may have split a value."""
    lines = [
        f"line {line}: has {len(row)} values, the head has {width} columns"
        for line, row in rows
        if any(row[width:])
    ]
    if lines:
        raise FileRefused(lines[:ERRORS_MAX])


def dates_in(cells: Iterable[tuple[int, str]], column: str = "") -> list[date]:
    """Read the dates of lines, of some times with a time; raises FileRefused."""
    found, wrong = [], []
    for line, text in cells:
        try:
            found.append(datetime.fromisoformat(_WITH_POINTS.sub(r"\3-\2-\1", text)).date())
        except ValueError:
            why = "is no date such as 2026-01-31 or 31.01.2026"
            wrong.append(f"line {line}{column}: {text[:40]!r} {why}")
    if wrong:
        raise FileRefused(wrong[:ERRORS_MAX])
    return found


def _pattern(mark: Mark) -> re.Pattern[str]:
    point, group = (".", ",") if mark == "point" else (",", ".")
    return re.compile(
        rf"(?P<sign>[-+−]?)(?P<whole>[1-9][0-9]{{0,2}}(?:['’ {group}][0-9]{{3}}){{,4}}"
        rf"|[0-9]{{1,12}})(?:{re.escape(point)}(?P<fraction>[0-9]{{1,6}})0*)?(?P<end>-?)"
    )


PATTERNS: dict[Mark, re.Pattern[str]] = {each: _pattern(each) for each in get_args(Mark)}


def _micros(text: str, mark: Mark) -> int | None:
    """Read one amount; None if it is none. No-break spaces count as spaces."""
    match = PATTERNS[mark].fullmatch(text.replace("\u00a0", " ").replace("\u202f", " "))
    if match is None or (match["sign"] and match["end"]):
        return None
    whole = int(re.sub(r"[^0-9]", "", match["whole"]))
    micros = whole * MICROS + int((match["fraction"] or "").ljust(6, "0"))
    negative = match["sign"] in {"-", "−"} or bool(match["end"])
    return None if micros > AMOUNT_MICROS_MAX else -micros if negative else micros


def _amounts(cells: Sequence[tuple[int, str]], layout: Layout) -> list[int]:
    marks = [*PATTERNS] if layout.decimal is None else [layout.decimal]
    readings = [[_micros(text, mark) for _, text in cells] for mark in marks]
    best, *other = sorted(readings, key=lambda reading: reading.count(None))
    wrong = [(cell, "is no amount") for cell, one in zip(cells, best, strict=True) if one is None]
    if not wrong and other and None not in other[0]:
        pairs = zip(cells, best, other[0], strict=True)
        why = "can be read in two ways; --decimal says which"
        wrong = [(cell, why) for cell, one, another in pairs if one != another]
    if wrong:
        column = f"column {layout.amount}"
        lines = [f"line {line}, {column}: {text[:40]!r} {why}" for (line, text), why in wrong]
        raise FileRefused(lines[:ERRORS_MAX])
    return [micros for micros in best if micros is not None]


@dataclass(frozen=True, slots=True)
class Ours:
    """What the log knows under a reference; `amount_micros` is None for a cost that is not known.

    `position` and `at` are those of its first event. `left_over`: nobody uses what it paid for.
    `organization_id` is None where it is of several, or of none.
    """

    position: int
    at: datetime
    reference: str
    amount_micros: int | None
    currency: str | None
    organization_id: UUID | None = None
    left_over: bool = False
    reverses: str = ""  # The deposit, by whose reference a bank may name it too.
    settles: Settled = NOTHING  # What a line of the bank for this would book.


@dataclass(frozen=True)
class Reconciliation:
    """How many references agree, and those that do not; `left_over` may be of both.

    `settled` is what may be booked: the lines of a bank that agree, or an invoice.
    """

    matched: int
    missing_here: list[Theirs]
    missing_there: list[Ours]
    different: list[tuple[Theirs, Ours]]
    left_over: list[Ours]
    settled: Sequence[Booking] = ()
    is_invoice: bool = False

    @property
    def ok(self) -> bool:
        return not (self.missing_here or self.missing_there or self.different)


def reconcile(
    theirs: Sequence[Theirs],
    ours: Iterable[Ours],
    month: str | None = None,
    shared: Container[str] = (),
) -> Reconciliation:
    """Compare the sums of each reference. With a month, theirs may lack ours of other months.

    Of a `shared` reference each amount is compared by itself, so that too much of one owner does
    not make up for too little of another.
    """
    there = _by_reference(theirs, shared)
    named = {each.reference for each in theirs}
    here: dict[_Key, Ours] = {}
    for each in ours:
        if month is None or each.reference in named or month_of(each.at) == month:
            key = _key_of(each, shared)
            before = here.get(key)
            here[key] = each if before is None else _sum(before, each)
    both = [(each, here[name]) for name, each in there.items() if name in here]
    different = [
        (a, b) for a, b in both if (a.amount_micros, a.currency) != (b.amount_micros, b.currency)
    ]
    nameless = [each for each in theirs if not each.reference]
    return Reconciliation(
        matched=len(both) - len(different),
        missing_here=[*(each for name, each in there.items() if name not in here), *nameless],
        missing_there=[each for name, each in here.items() if name not in there],
        different=different,
        left_over=[each for each in here.values() if each.left_over],
    )


def _key_of(each: Theirs | Ours, shared: Container[str]) -> _Key:
    return each.reference, each.amount_micros if each.reference in shared else None


def _by_reference(theirs: Iterable[Theirs], shared: Container[str]) -> dict[_Key, Theirs]:
    """Add up the lines of each reference, such as an order and its credit."""
    found: dict[_Key, Theirs] = {}
    for each in theirs:
        key = _key_of(each, shared)
        before = found.get(key)
        if before is not None and before.currency != each.currency:
            first = f"line {before.line} has this reference in {before.currency}"
            raise FileRefused([f"line {each.line}: {first}"])
        if before is not None:
            micros = before.amount_micros + each.amount_micros
            found[key] = replace(before, amount_micros=micros)
        elif each.reference:
            found[key] = each
    return found


def _sum(one: Ours, other: Ours) -> Ours:
    if one.organization_id != other.organization_id:
        one = replace(one, organization_id=None)
    if one.amount_micros is None or other.amount_micros is None or one.currency != other.currency:
        return replace(one, amount_micros=None, currency=None)
    return replace(one, amount_micros=one.amount_micros + other.amount_micros)


def costs_of(
    log: Log, provider: str, period: Period | None = None, progress: Progress = ignore_progress
) -> Iterator[Ours]:
    """Yield the costs of a provider's work by the provider's id of it; lookups have none.

    With a period all work that is not free is yielded, and its day or month is the reference.
    """
    for position, event in read_events(log, COSTLY, progress):
        for work in work_of(event):
            micros = None if work.cost is None else work.cost.amount_micros
            reference, left = work.reference, isinstance(event, LEFT_OVER)
            if period is not None:
                when = event.timestamp.isoformat()[: LENGTHS[period]]
                reference, left = None if micros == 0 else when, False
            if work.provider == provider and reference is not None:
                currency = None if work.cost is None else work.cost.currency
                whose: UUID = event.organization_id  # type: ignore[attr-defined]  # Each has it.
                yield Ours(position, event.timestamp, reference, micros, currency, whose, left)


def deposits_of(log: Log, progress: Progress = ignore_progress) -> Iterator[Ours]:
    """Yield what a bank knows: deposits, reversals, payouts, invoices; no play money."""
    invoices = dict[tuple[str | None, str], Ours]()
    for position, event in read_events(log, BANKED, progress):
        if isinstance(event, Wallet.Moved) and event.reference.type != SANDBOX_DEPOSIT:
            whose, reverses = event.organization_id, event.metadata.get("deposit", "")
            facts = (event.reference.id, event.change_micros, event.currency, whose)
            named = Settled(event.transaction_id, None, event.reference.id, whose)
            yield Ours(position, event.timestamp, *facts, reverses=reverses, settles=named)
        elif isinstance(event, Settlement.Booked) and event.settles is None:
            owed = (event.reference, -event.amount_micros, event.currency)
            key = event.provider, event.reference
            its = Settled(event.originator_id, *key)
            invoices[key] = Ours(position, event.timestamp, *owed, settles=its)
            if event.number % 2:  # It takes the invoice back.
                del invoices[key]
    yield from invoices.values()


def _named(lines: Iterable[Theirs], ours: Sequence[Ours]) -> Iterator[Theirs]:
    """Yield the lines, each with the reference that its text has: all its words in a row.

    Only what has the amount of the line counts, because a reference may be a lone number; of
    several the one that has all words of the others.
    """
    by_word = defaultdict[str, list[tuple[list[str], Ours]]](list)
    for each in ours:
        for name in {each.reference, each.reverses or each.reference}:
            words = _WORD.findall(name.casefold())
            by_word[words[0] if words else ""].append((words, each))
    references = {each.reference for each in ours}
    for line in lines:
        text, micros = _WORD.findall(line.reference.casefold()), line.amount_micros
        found = [
            (words, each.reference)
            for at, word in enumerate(text)
            for words, each in by_word.get(word, ())
            if each.amount_micros == micros and text[at : at + len(words)] == words
        ]
        longest, named = max(found, key=lambda each: len(each[0]), default=([], ""))
        parts = (set(words) < set(longest) for words, each in found if each != named)
        is_whole = micros > 0 and line.reference in references
        yield replace(line, reference=named) if named and all(parts) and not is_whole else line


def by_period(theirs: Sequence[Theirs], period: Period) -> list[Theirs]:
    """Replace the times that lines have as reference by their day or month; raises FileRefused.

    Lines without an amount are left out: some providers list the days without use too.
    """
    days = dates_in((each.line, each.reference) for each in theirs)
    return [
        replace(each, reference=day.isoformat()[: LENGTHS[period]])
        for each, day in zip(theirs, days, strict=True)
        if each.amount_micros
    ]


def reconcile_deposits(
    log: Log,
    lines: Sequence[Theirs],
    month: str | None = None,
    progress: Progress = ignore_progress,
) -> Reconciliation:
    """Compare a bank's statement with the deposits, reversals, payouts and invoices of providers.

    What else the bank has paid to others is left out, but not what it took back of a deposit. A
    reference is shared if several organizations use it; within one each is unique. An invoice
    that no line names waits to be paid.
    """
    ours = [*deposits_of(log, progress)]
    uses = Counter(each.reference for each in ours)
    named = _named(lines, ours)
    theirs = [each for each in named if each.amount_micros > 0 or each.reference in uses]
    shared = {name for name, count in uses.items() if count > 1}
    there = _by_reference(theirs, shared)
    ours = [each for each in ours if not each.settles.provider or _key_of(each, shared) in there]
    found = reconcile(theirs, ours, month, shared)
    odd = {line for line, _ in found.different}
    settled = []
    for its in ours:
        line = there.get(_key_of(its, shared))
        if line is None or line in odd or line.value_date is None:
            continue
        if its.amount_micros is not None and its.currency is not None:
            facts = (its.amount_micros, 0, its.currency, line.value_date)
            settled.append(Booking(its.settles, *facts))
    return replace(found, settled=settled)


def reconcile_costs(  # noqa: PLR0913  # Each is what the comparison needs.
    log: Log,
    lines: Sequence[Theirs],
    provider: str,
    period: Period | None = None,
    month: str | None = None,
    progress: Progress = ignore_progress,
    invoice: str | None = None,
) -> Reconciliation:
    """Compare a provider's invoice with its work, by reference, or by day or month.

    An `invoice` that has a number is to be booked; raises NotPossible for one of two currencies
    or none, or one that is booked with its number spelt otherwise: a bank may spell it in any way.
    """
    theirs = lines if period is None else by_period(lines, period)
    found = reconcile(theirs, costs_of(log, provider, period, progress), month)
    if invoice is None:
        return found
    named, units = {each.reference for each in theirs}, {each.currency for each in theirs}
    if len(units) != 1 or not units <= CURRENCIES:  # The log would keep it for ever.
        message = f"an invoice is in one currency: here are {', '.join(sorted(units)) or 'none'}"
        raise NotPossible(message)
    words = _WORD.findall(invoice.casefold())
    booked = {it.reference for it in deposits_of(log, progress) if it.settles.provider == provider}
    same = [each for each in booked if _WORD.findall(each.casefold()) == words]
    if same and invoice not in same:
        raise NotPossible(f"this invoice is booked as {same[0]}")
    known_micros = sum(
        each.amount_micros or 0
        for each in costs_of(log, provider, period, progress)
        if each.reference in named and each.currency in units
    )
    of, day = Settled(None, provider, invoice), theirs[-1].value_date
    assert day is not None, "whoever books gives it"
    facts = (sum(each.amount_micros for each in theirs), known_micros, units.pop(), day)
    return replace(found, settled=[Booking(of, *facts)], is_invoice=True)
