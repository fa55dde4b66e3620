"""The commands of the books: their months, statements, accounts, margin, and their exports."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal
from uuid import UUID

import click
import msgspec

from app.books.beancount import ledger_lines
from app.books.journal import DEFAULT
from app.books.margin import By, margin_of
from app.books.postings import Posting
from app.books.rates import Rates
from app.books.reader import Selection, read_transactions
from app.books.reconcile import (
    FILE_BYTES_MAX,
    Layout,
    Reconciliation,
    read_amounts,
    reconcile_costs,
    reconcile_deposits,
)
from app.books.statements import Balance, balance_of, statements_of
from app.books.trial_balance import month_balance
from app.books.trial_balance import trial_balance as add_up
from app.bootstrap.providers import INVOICES, LOOKUPS, NETWORKS
from app.cli.arguments import (
    CURRENCY,
    DATE,
    MONTH,
    NOT_ZERO,
    WORDS,
    Text,
    at_option,
    month_option,
    organization_argument,
    out_option,
    selecting,
)
from app.cli.import_files import naming, read_account_file
from app.cli.operation import Subject, misuse
from app.cli.output import Said, in_parts, show_stream, warn, written
from app.cli.session import Session
from app.http.edge.media import csv_blocks
from app.http.finance.replies import show_statement
from app.processes.importing import range_of
from app.processes.memory import collect_seldom
from app.processes.month_folder import ACCOUNTS, RATES, Given, Made, check_folder, make_folder
from domain.errors import refuse
from domain.finance.settlement import settle
from domain.log.log import Log
from domain.money import format_amount
from projections.audit.export import Export
from projections.engine.rebuild import Progress
from projections.engine.shape import pick
from projections.models.transactions import COLUMNS

Facts = dict[str, Any]
Form = Literal["jsonl", "csv", "beancount"]

MONTH_OR_CHECK = "give YYYY-MM and DIR, or --check DIR alone"
LAYOUT = [each.name for each in fields(Layout)]
APART = ("book take_back", "value_date date_column", "currency currency_column", "deposits by")
PART = "a part of jsonl needs --out: what tells it from a whole log goes into a file beside it"

FILE = click.Path(path_type=Path, dir_okay=False, exists=True, allow_dash=True)
FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)

books = Subject()
audit, months = books.add("audit"), books.add("months")
audit.callback = months.callback = collect_seldom  # Their commands read all of the log.


@audit.command("statement", right=None, on="any log")
@organization_argument
@click.argument("month", metavar="YYYY-MM", type=MONTH)
def statement(session: Session, organization_id: UUID, month: str) -> Said:
    """Make the statement of a month from the log, as the organization gets it.

    Those of all organizations, as they can be sent, are in the folder of a month.
    """
    session.require_organization(organization_id)
    container, progress = session.container, session.watch("Reading")
    found = statements_of(container.log, month, organization_id, progress)
    if not found.statements:
        refuse("no statement: the organization had no transaction by then, or the month is to come")
    checkpoint = container.statement_checkpoint(found.closed_at)
    (its,) = found.statements
    shown = show_statement(its, is_final=found.closed_at is not None, checkpoint=checkpoint)
    facts = msgspec.to_builtins(shown)
    lines = facts["lines"]
    return Said(facts, [{**facts, "lines": len(lines)}, *(["", lines] if lines else [])])


@audit.command("balance", right=None, on="any log")
@organization_argument
@at_option
def balance(session: Session, organization_id: UUID, at: datetime | int | None) -> Balance:
    """Tell what a wallet holds, or held, by its entries in the log.

    `position` is that of the last entry that counts. An entry that is dated before the one ahead
    of it counts as of that one.
    """
    session.require_organization(organization_id)
    found = balance_of(session.container.log, organization_id, at, session.watch("Reading"))
    if found is None:
        refuse("this organization had no wallet then")
    return found


@audit.command("replay", right=None, on="any log")
@selecting
def replay(session: Session, **selected: Any) -> None:
    """Print every transaction in the order of the log, with who made it by a command.

    Times are those of `charged_at`.
    """
    selection = _selection(**selected)
    session.require_organization(selection.organization_id)
    log = session.container.log
    rows = (
        {
            "organization": str(each.organization_id),
            **msgspec.to_builtins(each.entry),
            "actor": session.named(each.actor),
        }
        for each in read_transactions(log, selection, session.watch("Reading"))
    )
    show_stream(rows, _line, as_json=session.as_json)


def _selection(**selected: Any) -> Selection:
    since, until = selected["since"], selected["until"]
    if since and type(since) is type(until) and since > until:
        misuse("--from is after --to")
    return Selection(**selected)


def _line(row: Mapping[str, Any]) -> str:
    amount = f"{'-' if row['direction'] == 'debit' else '+'}{row['amount']}"
    facts = (row["position"], row["charged_at"], row["organization"], row["sequence"], row["kind"])
    cells = (amount, row["currency"], row["balance_after"], row["id"], row["actor"] or "-")
    return "  ".join(map(str, (*facts, *cells)))


@audit.command("margin", right=None)
@click.option(
    "--by",
    type=click.Choice(["day", "month", "org", "plan", "provider"]),
    default="month",
    show_default=True,
    help="What each row is about.",
)
@month_option("Of a month, by the cut-off of the statements.")
def margin(session: Session, *, by: By, month: str | None) -> Said:
    """Tell what was earned: revenue, refunds, costs of providers, and what is left.

    Left is the margin in the currency of the wallets, of which other costs and those that are not
    known have yet to be taken. `unknown` counts the latter.
    """
    container = session.container
    found = margin_of(container.log, by, session.watch("Adding up"), month)
    currency = found.currency or container.settings.currency
    rows, total = [*found.formatted(currency)], found.total.formatted(currency)
    session.refuse_future(month, is_empty=not rows)
    last = [{**dict.fromkeys(rows[0]), by: "total", **total}] if rows else []
    return Said({"by": by, "currency": currency, "data": rows, "total": total}, [[*rows, *last]])


@audit.command("trial-balance", right=None)
@at_option
@month_option("Of a month, by the cut-off of the statements.")
def trial_balance(session: Session, *, at: datetime | int | None, month: str | None) -> Said:
    """Show every account with what it holds; exits with 1 when a currency does not sum to zero.

    Wallets are owed to the organizations, and are the sum of the balances that their newest entries
    state. All other accounts are sums of amounts.

    With --month each account has its opening, its movement in the month and its closing, above zero
    for a debit. They are those of the statements of this month.
    """
    if at is not None and month is not None:
        misuse("give --at or --month")
    log, facts = session.container.log, Facts()
    progress = session.watch("Adding up")
    if month is None:
        found = add_up(log, at, progress)
        lines, unknown = [*map(_account, found.lines)], found.unknown
    else:
        its = month_balance(log, month, progress)
        session.refuse_future(month, is_empty=its.opening.lines == its.closing.lines)
        found, unknown = its.closing, its.closing.unknown - its.opening.unknown
        lines = [*its.formatted()]
        facts = {"month": month, "final": its.is_final}
    differences = [
        {"amount": format_amount(micros), "currency": currency}
        for currency, micros in found.differences.items()
        if micros
    ]
    session.ok = not differences
    facts |= {"ok": session.ok, "position": found.position}
    facts |= {"unknown_costs": unknown, "differences": differences}
    return Said({**facts, "data": lines}, [lines, facts])


def _account(line: Posting) -> Facts:
    debit, credit = max(line.micros, 0), max(-line.micros, 0)
    amounts = {"debit": format_amount(debit), "credit": format_amount(credit)}
    return {"account": line.account, "currency": line.currency, **amounts}


def _read_only(value: str) -> tuple[str, str]:
    column, sign, wanted = value.partition("=")
    if not (column and sign):
        raise ValueError
    return column, wanted


@audit.command("reconcile", right="audit", when=lambda given: given["book"] or given["take_back"])
@click.argument("file", metavar="FILE", type=click.File("rb"))
@click.option(
    "--provider",
    type=click.Choice([*LOOKUPS, *NETWORKS]),
    help="Compare an invoice with what this provider takes.",
)
@click.option("--deposits", is_flag=True, help="Compare a bank's statement with the deposits.")
@month_option("Expect only what is of this month in the file.")
@click.option("--by", type=click.Choice(["day", "month"]), help="Compare sums; see below.")
@click.option("--reference", help="The column of it; default: reference.")
@click.option("--amount", help="The column of it; default: amount.")
@click.option("--currency-column", help="The column of currencies.")
@click.option("--currency", type=CURRENCY, help="That of all amounts; default: CURRENCY.")
@click.option(
    "--only",
    type=Text(
        "column=value", _read_only, "{!r} is not a column and a value such as Category=lookups"
    ),
    help="Only lines with this value in that column.",
)
@click.option("--decimal", type=click.Choice(["point", "comma"]), help="Default: the file tells.")
@click.option("--encoding", help="Default: UTF-8, or UTF-16 with its mark.")
@click.option("--book", is_flag=True, help="Book what agrees, once.")
@click.option("--take-back", is_flag=True, help="Undo what --book does.")
@click.option("--value-date", type=DATE, help="Of all that is booked.")
@click.option("--date-column", help="The column of value dates.")
@click.option("--invoice", type=WORDS, help="Its number, by which the bank will name it.")
@click.option("--accept", type=NOT_ZERO, help="How much more an invoice asks for than is known.")
def reconcile(session: Session, file: IO[bytes], **given: Any) -> Said:
    """Compare a CSV file of references and amounts with the log; `-` is the standard input.

    Tells what is missing there or here, and what has another amount; then exits with 1. Also
    tells what nobody has, though a network takes its price. Lines of one reference are added up,
    but for deposits of several organizations under one, which need a line each. Of a bank's
    statement only what was paid in counts, what went back of it, and payouts; a text may have a
    reference among other words. With --by the references are dates, and what a provider takes is
    added up by day or month (UTC), also for lookups, which have no reference.

    With --book what agrees of the bank's lines goes to the bank's account, once, or an invoice is
    booked, whose payment is then expected in the bank's lines. --take-back undoes it.
    """
    _check_options(given)
    provider, month, invoice = (given[each] for each in ("provider", "month", "invoice"))
    session.refuse_future(month)
    parts, progress = session.container, session.watch("Reading")
    options: Facts = {"currency": parts.settings.currency, **INVOICES.get(provider or "", {})}
    if given["currency"]:
        options.pop("currency_column", None)  # That of the provider's file.
    options |= {name: value for name in (*LAYOUT, "by") if (value := given[name])}
    by = options.pop("by", None)
    with naming(file):
        theirs = read_amounts(file.read(FILE_BYTES_MAX + 1), Layout(**options))
        if provider is None:
            found = reconcile_deposits(parts.log, theirs, month, progress)
        else:
            found = reconcile_costs(parts.log, theirs, provider, by, month, progress, invoice)
    return _reconciled(found, _booked(session, found, given))


def _check_options(given: Facts) -> None:
    for pair in APART:
        if all(given[each] for each in pair.split()):
            misuse(f"give only one of --{pair.replace('_', '-').replace(' ', ' and --')}")
    deposits, is_dated = given["deposits"], given["value_date"] or given["date_column"]
    if deposits == (given["provider"] is not None):
        misuse("name the provider by --provider, or say --deposits")
    books, invoice = given["book"] or given["take_back"], given["invoice"]
    if (books or invoice) and (not is_dated or deposits is not (invoice is None)):
        misuse("to book, or to take back, give a date, and beside --provider alone an --invoice")
    if given["accept"] and not invoice:
        misuse("--accept goes with --invoice")


def _booked(session: Session, found: Reconciliation, given: Facts) -> Facts:
    """Book, or take back, what may be; an invoice only with the difference that is accepted."""
    session.ok, booked, settled = found.ok, Facts(), found.settled
    if found.is_invoice:
        (its,) = settled
        more = its.amount_micros - its.known_micros
        booked = {"amount": format_amount(its.amount_micros), "difference": format_amount(more)}
        if given["book"] and more != (given["accept"] or 0):
            session.ok, settled = False, ()
    back = given["take_back"]
    if given["book"] or back:
        log, cause = session.container.log, session.cause
        done = [settle(log, each, cause, back=back) for each in settled]
        booked |= {"taken_back" if back else "booked": sum(done), "unchanged": done.count(False)}
    return booked


def _reconciled(found: Reconciliation, booked: Facts) -> Said:
    ours, money = "position at organization reference amount currency", "amount currency"
    rows = {
        "missing_here": [pick(f"line reference {money}", each) for each in found.missing_here],
        "missing_there": [pick(ours, each) for each in found.missing_there],
        "different": [
            pick("line position organization reference", line, its)
            | {"there": pick(money, line), "here": pick(money, its)}
            for line, its in found.different
        ],
        "left_over": [pick(ours, each) for each in found.left_over],
    }
    return in_parts({"ok": found.ok, "matched": found.matched, **booked}, rows)


@audit.command("export", right=None)
@click.option("--format", "form", type=click.Choice(["jsonl", "csv", "beancount"]), default="jsonl")
@selecting
@out_option("Write it here.")
def export_log(session: Session, *, form: Form, out: Path | None, **selected: Any) -> Facts | None:
    """Write the log as lines of JSON, or what it says about money in other forms.

    jsonl: a line for each event with its place, its stored bytes, and its leaf. Beside a part goes
    FILE.range.json with what an auditor needs of the tree before it. csv: every transaction in the
    order of the log. beancount: a ledger in double entry.

    To the standard output, or with --out to a file that is there only once it is whole.
    """
    selection = _selection(**selected)
    if out is None and session.as_json:
        misuse("--json needs --out: without it the standard output is the export")
    if form == "jsonl":
        first, last = selection.since, selection.until
        if isinstance(first, datetime) or isinstance(last, datetime) or selection.organization_id:
            misuse("jsonl has all events: give --from and --to as positions, and no --org")
        if out is None and (first is not None or last is not None):
            misuse(PART)
        facts = _export_events(session, first, last, out)
    else:
        session.require_organization(selection.organization_id)
        make: Callable[..., Iterator[bytes]] = _table if form == "csv" else ledger_lines
        progress = session.watch("Exporting")
        with written(out) as file:
            file.writelines(make(session.container.log, selection, progress))
        facts = {"format": form}
    return None if out is None else facts


def _table(log: Log, selection: Selection, progress: Progress) -> Iterator[bytes]:
    """Yield the transactions as partners get them, with their organization and their actor."""
    rows = (
        (each.organization_id, *each.entry.cells(COLUMNS), each.actor)
        for each in read_transactions(log, selection, progress)
    )
    return csv_blocks(("organization", *COLUMNS, "actor"), rows)


def _export_events(
    session: Session, first: int | None, last: int | None, out: Path | None
) -> Facts:
    log = session.container.log
    head = log.head()
    end = head if last is None else min(last, head)
    export = Export(log, end, session.watch("Exporting"))
    before = export.skip_to(first or 1)
    if out is not None:
        range_of(out).unlink(missing_ok=True)  # Of an earlier export by this name.
        if first is not None or last is not None:
            with written(range_of(out)) as file:
                file.write(msgspec.json.encode(before) + b"\n")
    with written(out) as file:
        file.writelines(export.lines())
    return pick("events position size root", export, export.tree, root=export.tree.root().hex())


@months.command("close", right="audit")
@click.argument("month", metavar="YYYY-MM", type=MONTH)
def close(session: Session, month: str) -> Facts:
    """Close a month that has ended, for ever, where the clock does not.

    The clock closes no month, and charges no fee, when the installation seems to have been dead for
    more than a day. Look at the time first: this says that it is right, so both go on.
    """
    cause = session.cause
    session.container.month_end.close(month, cause)
    return {"month": month, "closed_at": cause.at}


@months.command("folder", right=None, on="any log")
@click.argument("month", metavar="[YYYY-MM", type=MONTH, required=False)
@click.argument("directory", metavar="DIR]", type=click.Path(path_type=Path), required=False)
@click.option("--accounts", type=FILE, help="What your bookkeeping calls our accounts (JSON).")
@click.option("--rates", type=FILE, help="Rates by day for other currencies (the ECB's CSV).")
@click.option("--check", type=FOLDER, help="A folder that was kept: compare it with the log.")
def folder(  # noqa: PLR0913  # Its options.
    session: Session,
    month: str | None,
    directory: Path | None,
    *,
    accounts: Path | None,
    rates: Path | None,
    check: Path | None,
) -> Made | Said:
    """Put into DIR what finance sends, books and keeps of a closed month.

    A statement for each organization, numbered without gaps; the journal for DATEV, Xero and
    QuickBooks; the trial balance; the margin by provider and by plan; the checkpoint of the
    close, what the verifier says of the log up to it, and an index of all that.

    Made again it is the same, byte by byte; a DIR that holds something else is refused. Exits
    with 1 when the verifier, or the trial balance, finds something wrong. With --rates the journal
    is in CURRENCY alone, and costs and rates of others are listed.

    With --check a kept folder is made again with the issuer, accounts and rates in it. Tells which
    files say something else (`money`; then exits with 1), and which only look otherwise (`dress`).
    """
    container, progress = session.container, session.watch("Making")
    if check is not None:
        if month or directory or accounts or rates:
            misuse(MONTH_OR_CHECK)
        given = _given(session, check / ACCOUNTS, next(check.glob(RATES), None))
        found = check_folder(container, check, given, progress)
        session.ok = not found.money
        zone = {name: it for name, it in given.accounts.items() if name == "time_zone"}
        facts = {"month": found.month, **zone, "ok": session.ok, "same": len(found.same)}
        return in_parts(facts, {"money": found.money, "dress": found.dress})
    if month is None or directory is None:
        misuse(MONTH_OR_CHECK)
    given = _given(session, accounts or DEFAULT, rates)
    if not container.settings.issuer:
        warn("ISSUER is not set, so the statements do not say who sends them")
    made = make_folder(container, month, given, directory, progress)
    session.ok = made.ok
    return made


def _given(session: Session, accounts: Path, rates: Path | None) -> Given:
    with click.open_file(str(accounts), "rb") as file, naming(file):
        called = read_account_file(file.read())
    if rates is None:
        return Given(called)
    with click.open_file(str(rates), "rb") as file, naming(file):
        return Given(called, Rates(file.read(FILE_BYTES_MAX), session.container.settings.currency))
