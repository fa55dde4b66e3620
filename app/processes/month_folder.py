"""A closed month in a folder: what finance sends, books and keeps of it, from the log alone.

Its bytes follow from the log up to the close, the first checkpoint that covers it, ISSUER, the
accounts and rates of the operator, and the release; no clock and no order of chance is in them. So
whoever makes it again gets the same folder.
"""

import csv
import filecmp
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial
from hashlib import sha256
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from app.books.journal import EACH, FORMS, Accounts, Move, book, daily, moves_of, of_program, parts
from app.books.margin import margin_of
from app.books.rates import Rates
from app.books.statements import statements_of
from app.books.trial_balance import IN_MONTH, MonthBalance, month_balance
from app.bootstrap.container import Container
from app.http.edge.media import TEMPLATES, csv_blocks
from app.http.finance import page
from app.http.finance.replies import Statement, show_statement
from domain.accounts.organization import Organization
from domain.accounts.wallet import DEPOSIT, SANDBOX_DEPOSIT
from domain.errors import NotPossible
from domain.finance.statement import Month
from domain.finance.statement import Statement as BookStatement
from domain.money import format_amount
from domain.months import last_day
from projections.audit.checkpoint import SignedCheckpoint, verifier_key
from projections.audit.export import Export
from projections.audit.rules import verifier
from projections.engine.reader import read_events
from projections.engine.rebuild import Progress

SUMS = "SHA256SUMS"  # As sha256sum checks them.
ACCOUNTS, RATES = "journal/accounts.json", "rates.csv"  # What was used of them.
BY_ACCOUNTS = ("journal/", "foreign.csv", RATES)
FOREIGN = ("day", "account", "other", "currency", "amount", "converted", "into")
INDEX = ("number", "organization", "name", "currency", "opening", "debit", "credit", "closing")
# What moved wallets in the month, each with its sign, so that a row adds up; and of which kinds.
MOVED = ("paid_in", "used", "given_back", "corrected", "paid_back")
ROLL_FORWARD = ("organization", "customer_number", "name", "currency", "opening", *MOVED, "closing")
COLUMN_OF = {
    **dict.fromkeys((DEPOSIT, SANDBOX_DEPOSIT), "paid_in"),
    "refund": "given_back",
    "adjustment": "corrected",
    **dict.fromkeys(("reversal", "claim", "payout"), "paid_back"),
}  # Of all other kinds it is `used`.
AMOUNT = re.compile(r"-?[0-9]+\.[0-9]{2,6}", re.ASCII)
TITLE = re.compile(r"<title>Books ([0-9]{4}-[0-9]{2})</title>")
ISSUER = re.compile(r'<p class="issuer">(.*?)</p>', re.DOTALL)
TAG = re.compile(r"<style>.*?</style>|<[^>]*>", re.DOTALL)
FIGURE = re.compile(r"\S*[0-9]\S*")
# Columns of words, which state nothing that no other column does.
TEXTS = {"issuer", "Buchungstext", "*Narration", "Description"}
OWN = ("number", "issuer", "organization", "name", "from", "to", "checkpoint")


class Given(NamedTuple):
    """What the operator says beside the log; without rates nothing is converted."""

    accounts: Accounts
    rates: Rates | None = None


@dataclass(frozen=True)
class Made:
    """A folder: whether all of it holds, and whether it was there before, byte by byte the same."""

    month: str
    statements: int
    ok: bool
    unchanged: bool
    out: Path


@dataclass(frozen=True)
class Checked:
    """A kept folder: files that are what the log gives, say else, or only look otherwise."""

    month: str
    same: list[dict[str, str]]
    money: list[dict[str, str]]
    dress: list[dict[str, str]]


def make_folder(
    container: Container, month: str, given: Given, directory: Path, progress: Progress
) -> Made:
    """Make the folder, whole or not at all; NotPossible for an open month or an other folder."""
    directory = directory.resolve()  # A symbolic link stays one.
    if directory.exists() and not _may_be_ours(directory):
        raise NotPossible(f"{directory}: is not empty, and no folder of a month")
    _require_closed(container, month)
    directory.parent.mkdir(parents=True, exist_ok=True)
    name = f".{directory.name}.unfinished-"
    draft = Path(tempfile.mkdtemp(prefix=name, dir=directory.parent))  # Only for us: mode 0700.
    try:
        found = _Month(container, month, given, draft, progress, container.settings.issuer)
        found.write()
        return Made(month, len(found.rows), found.ok, not _appear(draft, directory), directory)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def check_folder(
    container: Container, directory: Path, given: Given, progress: Progress
) -> Checked:
    """Make a kept folder again, with its own issuer, and compare each file but SUMS.

    What differs and cannot be shown to be dress is money.
    """
    index = (directory / "index.html").read_bytes().decode("utf-8", "replace")
    month, issuer = TITLE.search(index), ISSUER.search(index)
    if month is None:
        raise NotPossible(f"{directory}: its index.html is not that of a month")
    _require_closed(container, month[1])
    its, found = unescape(issuer[1]) if issuer is not None else "", Checked(month[1], [], [], [])
    with tempfile.TemporaryDirectory() as scratch:
        draft = Path(scratch)
        fault = _Month(container, month[1], given, draft, progress, its).write(is_again=True)
        for name in sorted((_files(draft) | _files(directory)) - {SUMS}):
            what, how = _compared(name, draft / name, directory / name)
            if fault and name.startswith(BY_ACCOUNTS) and not (draft / name).exists():
                what, how = "money", f"cannot be made again: {fault}"
            getattr(found, what).append({"file": name, "difference": how})
    if its != container.settings.issuer:
        found.dress.append({"file": "", "difference": "it was made with another ISSUER"})
    return found


def _compared(name: str, ours: Path, theirs: Path) -> tuple[str, str]:
    """Return which list of `Checked` a file belongs to, and how it differs."""
    if not theirs.exists():
        return "money", "is gone"
    if not ours.exists():
        is_of_books = name.startswith(("statements/", "journal/"))
        return "money" if is_of_books else "dress", "is not of this folder"
    one, other = ours.read_bytes(), theirs.read_bytes()
    if one == other:
        return "same", ""
    with suppress(ValueError, csv.Error, msgspec.MsgspecError):
        rows, stored = _facts(name, one), _facts(name, other)
        pairs = zip(rows, stored, strict=True)
        if all(
            was.items() <= it.items()
            and not any(FIGURE.search(str(it[key])) for key in it.keys() - was.keys())
            for it, was in pairs
        ):
            return "dress", "looks otherwise, as after a change of release"
    return "money", "says something else than the log"


def _facts(name: str, data: bytes) -> list[dict[str, Any]]:
    """Return what a file states, but for the words of its texts; of a page its figures."""
    if name.endswith(".json"):
        return [msgspec.json.decode(data, type=dict[str, Any])]
    is_datev = name.startswith("journal/EXTF")
    text = data.decode("cp1252" if is_datev else "utf-8")
    if name.endswith(".csv"):
        head, _, table = text.partition("\n") if is_datev else ("", "", text)
        rows = csv.DictReader(StringIO(table), delimiter=";" if is_datev else ",", strict=True)
        return [{"": head}, *({k: v for k, v in row.items() if k not in TEXTS} for row in rows)]
    if name.endswith(".html"):
        return [{"": FIGURE.findall(TAG.sub(" ", text.partition("<h2>Files")[0]))}]
    wrong = [line for line in text.splitlines() if line.startswith("FAILED")]
    return [{"": wrong if name == "verdict.txt" else text}]


def _require_closed(container: Container, month: str) -> None:
    if container.log.find(Month, Month.id_of(month)) is None:
        events = (each.event for each in read_events(container.log, (Month.Closed,)))
        closed = [each.month for each in events if isinstance(each, Month.Closed)]
        hint = f"closed are {min(closed)} to {max(closed)}" if closed else "no month is closed yet"
        message = f"month {month} is not closed: {hint}; the clock closes each after its end"
        raise NotPossible(message)


def _may_be_ours(directory: Path) -> bool:
    return directory.is_dir() and ((directory / SUMS).exists() or not any(directory.iterdir()))


def _appear(draft: Path, directory: Path) -> bool:
    """Let a folder appear as a whole; return False if the very same one is there."""
    if not directory.exists() or not any(directory.iterdir()):
        draft.rename(directory)
        return True
    ours, theirs = _files(draft), _files(directory)
    _, differ, odd = filecmp.cmpfiles(draft, directory, ours & theirs - {SUMS}, shallow=False)
    others = (ours - theirs, "lacks"), (theirs - ours, "holds"), (differ + odd, "differs in")
    for names, facts in others:
        if names:
            message = f"{directory}: {facts} {min(names)}; name a directory that is not there yet"
            raise NotPossible(message)
    return False


def _files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


@dataclass
class _Month:
    """The files of a month, as they are written."""

    container: Container
    month: str
    given: Given
    directory: Path
    progress: Progress
    issuer: str
    rows: list[Sequence[Any]] = field(default_factory=list)  # Of the index: each statement.
    ok: bool = True
    _sums: dict[str, str] = field(default_factory=dict)

    def write(self, *, is_again: bool = False) -> str:
        """Write all files; `is_again` by what was kept: return why that gives no whole journal."""
        log, fault = self.container.log, ""
        found = statements_of(log, self.month, progress=self.progress)
        note = self.container.statement_checkpoint(found.closed_at)
        if found.closed_at is None or note is None:
            hint = "one is signed a minute after it; see: python -m app audit checkpoint"
            raise NotPossible(f"no checkpoint covers the close of month {self.month} yet: {hint}")
        self._put("checkpoint.txt", [note.encode()])
        names = self._names(found.closed_at)
        order = {owner: index for index, owner in enumerate(names)}
        found.statements.sort(key=lambda each: order.get(each.organization_id, len(order)))
        statements = [
            show_statement(each, is_final=True, checkpoint=note) for each in found.statements
        ]
        for number, each in enumerate(statements, 1):
            self._send(f"{self.month}-{number:06}", each, names.get(each.organization, ""))
        balance = month_balance(log, self.month, self.progress)
        self._roll_forward(found.statements, names, balance.closing.numbers)
        sums = self._balance(balance)
        self._margins()
        signed = SignedCheckpoint.read(note)
        try:
            self._journal(balance, signed.checkpoint.at)
        except NotPossible as error:
            if not is_again:
                raise
            fault = str(error)
        self._index(self._verdict(signed, statements) + sums, signed, found.closed_at)
        return fault

    def _names(self, until: int) -> dict[UUID, str]:
        """Return the names of the organizations, in the order in which they were registered."""
        uses = (Organization.Registered,)
        events = (each.event for each in read_events(self.container.log, uses, until=until))
        return {each.originator_id: each.name for each in events if isinstance(each, uses)}

    def _put(self, name: str, blocks: Iterable[bytes]) -> None:
        path, digest = self.directory / name, sha256()
        path.parent.mkdir(exist_ok=True)
        with path.open("xb") as file:
            for block in blocks:
                digest.update(block)
                file.write(block)
        self._sums[name] = digest.hexdigest()

    def _send(self, number: str, shown: Statement, name: str) -> None:
        """Write one statement: a page to print, a table, and what the verifier compares."""
        issuer, file = self.issuer, f"statements/{number}"
        first, last = f"{self.month}-01", last_day(self.month).isoformat()
        numbered = f"No. {number}, from {first} to {last} (UTC)"
        html = page.statement_page(shown, name, issuer, numbered)
        note = " ".join(str(shown.checkpoint).split())
        own = (number, ", ".join(issuer.splitlines()), shown.organization, name, first, last, note)
        rows = [(*own, *map(_plain, row)) for row in page.rows_with_totals(shown)]
        self._put(f"{file}.html", [html.encode()])
        self._put(f"{file}.csv", csv_blocks((*OWN, *page.COLUMNS), rows))
        self._put(f"{file}.json", [msgspec.json.encode(shown) + b"\n"])
        total, _ = page.totals(shown)
        amounts = (shown.opening_balance, total.debit, total.credit, shown.closing_balance)
        self.rows.append((number, str(shown.organization), name, shown.currency, *amounts))

    def _roll_forward(
        self,
        statements: Sequence[BookStatement],
        names: Mapping[UUID, str],
        numbers: Mapping[UUID, str | None],
    ) -> None:
        """Write what each wallet held, what moved it, and what it holds; a total by currency."""
        rows, totals = list[tuple[Any, ...]](), defaultdict[str, Counter[str]](Counter)

        def add(*of: object, moved: Mapping[str, int]) -> None:
            amounts = (format_amount(moved[it]) for it in ("opening", *MOVED, "closing"))
            rows.append((*of, *map(_plain, amounts)))

        for each in statements:
            moved = Counter(opening=each.opening_micros, closing=each.closing_micros)
            for kind, line in each.lines.items():
                moved[COLUMN_OF.get(kind, "used")] += line.credit_micros - line.debit_micros
            totals[each.currency].update(moved)
            owner = each.organization_id
            number, name = numbers.get(owner) or "", names.get(owner, "")
            add(owner, number, name, each.currency, moved=moved)
        for currency, moved in totals.items():
            add("total", "", "", currency, moved=moved)
        self._put("wallets.csv", csv_blocks(ROLL_FORWARD, rows))

    def _balance(self, balance: MonthBalance) -> str:
        rows = ([*map(_plain, row.values())] for row in balance.formatted())
        self._put("trial-balance.csv", csv_blocks(IN_MONTH, rows))
        self.ok = not any(balance.closing.differences.values())
        if self.ok:
            return "ok       the accounts of each currency sum to zero\n"
        return "FAILED   the accounts of a currency do not sum to zero: see trial-balance.csv\n"

    def _margins(self) -> None:
        """Write what was earned by provider (networks are some) and by plan."""
        for by in ("provider", "plan"):
            found = margin_of(self.container.log, by, self.progress, self.month)
            currency = found.currency or self.container.settings.currency
            total = found.total.formatted(currency)
            head = [by, *(["name"] if by == "plan" else []), *total, "currency"]
            rows = [*found.formatted(currency), {by: "total", **total}]
            cells = [
                [_plain({**row, "currency": currency}.get(key)) for key in head] for row in rows
            ]
            self._put(f"margin-by-{by}.csv", csv_blocks(head, cells))

    def _journal(self, balance: MonthBalance, made_at: datetime) -> None:
        """Write the journal for each program that the accounts name, in files of one currency.

        Single postings are as many as entries, so the log is read again for each of these.
        """
        accounts, rates = self.given
        single = accounts["postings"] == "single"
        wanted = [(name, form) for name, form in FORMS.items() if accounts[name] is not None]
        by_customer = any(EACH in accounts[name]["accounts"] for name, _ in wanted)
        balance = balance._replace(by_customer=by_customer)
        log, zone = self.container.log, accounts.get("time_zone", "UTC")
        moves = partial(moves_of, log, self.month, balance, self.progress, zone)
        summed = daily(moves()) if rates or not single else []
        for currency in sorted({line.currency for _, line in balance.lines}):
            unit = f"{currency}-in-{rates.base}" if rates and currency != rates.base else currency
            for name, form in wanted:
                every = book(moves() if single else summed, balance, self.month, single=single)
                booked = of_program(every, currency, accounts[name], rates)
                for number, part in enumerate(parts(booked, form.postings_max), 1):
                    file = f"journal/{form.file}_{self.month}_{unit}_{number:03}.csv"
                    self._put(file, [form.write(part, accounts[name], made_at)])
        self._put(ACCOUNTS, [msgspec.json.encode(accounts) + b"\n"])
        if rates is not None:
            self._foreign(summed, rates)

    def _foreign(self, moves: Iterable[Move], rates: Rates) -> None:
        """Write what has moved in other currencies, what that is in ours, and by which rates."""
        convert, rows = rates.adding_up(), list[tuple[Any, ...]]()
        for day, *pair, currency, micros, _, _ in moves:
            if currency != rates.base and str(day).startswith(self.month):
                due = convert(f"{pair} {currency}", micros, currency, day)
                amounts = (_plain(format_amount(each)) for each in (micros, due))
                rows.append((day, *pair, currency, *amounts, rates.base))
        self._put("foreign.csv", csv_blocks(FOREIGN, rows))
        head, *used = rates.used()
        self._put(RATES, csv_blocks(head, used))

    def _verdict(self, signed: SignedCheckpoint, statements: Sequence[Statement]) -> str:
        """Let the verifier read the log up to the checkpoint, and compute each statement too."""
        checkpoint, program, note = signed.checkpoint, verifier(), signed.note
        its = (key.public_key for key in self.container.checkpoint_keys.live())
        keys = [program.read_key(verifier_key(checkpoint.origin, each)) for each in its]
        checked = program.Check([program.read_checkpoint("checkpoint.txt", note, keys)])
        # The checkpoint may cover the beginning of a commit only, so this is called a part.
        checked.begin("log.jsonl", program.Tree())
        for line in Export(self.container.log, checkpoint.position, self.progress).lines():
            checked.take(msgspec.json.decode(line))
        computed = checked.judge.books.statements()
        theirs = {it["organization"]: it for it in computed if it["month"] == self.month}
        ours = [msgspec.to_builtins(each) for each in statements]
        for each in ours:
            each["lines"].sort(key=lambda line: line["kind"])
        # The verifier puts no note into its own.
        same = sum(it == {**theirs.get(it["organization"], {}), "checkpoint": note} for it in ours)
        checked.end()
        self.ok = self.ok and not checked.failures and same == len(ours)
        word = "ok" if same == len(ours) else "FAILED"
        last = f"{word:8} {same} of {len(ours)} statements are those that it computes"
        return "".join(f"{line}\n" for line in (*map(program.printable, checked.verdicts), last))

    def _index(self, verdict: str, signed: SignedCheckpoint, closed_at: int) -> None:
        """Write what is here, for people and for programs, and the sums of all files, last."""
        self._put("verdict.txt", [verdict.encode()])
        self._put("index.csv", csv_blocks(INDEX, [[*map(_plain, row)] for row in self.rows]))
        shown = TEMPLATES.get_template("month.html").render(
            style=page.STYLE,
            issuer=self.issuer,
            month=self.month,
            closed_at=closed_at,
            ok=self.ok,
            time_zone=self.given.accounts.get("time_zone"),
            rows=self.rows,
            files=[name for name in sorted(self._sums) if not name.startswith("statements/")],
            verdict=verdict,
            checkpoint=signed.note,
        )
        self._put("index.html", [shown.encode()])
        sums = [f"{digest}  {name}\n".encode() for name, digest in sorted(self._sums.items())]
        self._put(SUMS, sums)


def _plain(value: Any) -> Any:
    """Return a cell of a table; a plain number harms no spreadsheet and is not defused."""
    if isinstance(value, list):  # Costs in other currencies.
        return ", ".join(f"{each['amount']} {each['currency']}" for each in value)
    return Decimal(value) if isinstance(value, str) and AMOUNT.fullmatch(value) else value
