"""`audit reconcile`: an invoice or a bank's statement against the log."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import IO, Any

import click

from app.bootstrap.providers import INVOICES, LOOKUPS, NETWORKS
from app.cli.arguments import Month
from app.cli.installation import installation
from app.cli.output import Refusals, as_json_option, show_parts, watched
from domain.log.log import Log
from domain.money import format_amount
from domain.months import month_of
from projections.audit.amounts_file import FILE_BYTES_MAX, Layout, Theirs, WrongFile, read_amounts
from projections.audit.reconcile import (
    Ours,
    Period,
    Reconciliation,
    by_period,
    costs_of,
    deposits_of,
    sums_of,
)
from projections.audit.reconcile import reconcile as compare
from projections.engine.rebuild import Progress

Facts = dict[str, Any]

ONE_OF_BOTH = "name the provider by --provider, or say --deposits"


class Only(click.ParamType[tuple[str, str], str]):
    """A column and the value that a line must have there."""

    name = "column=value"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        column, sign, wanted = value.partition("=")
        if not (column and sign):
            self.fail(f"{value!r} is not a column and a value such as Category=lookups", param, ctx)
        return column, wanted


@click.command()
@click.argument("file", metavar="FILE", type=click.File("rb"))
@click.option(
    "--provider",
    type=click.Choice([*LOOKUPS, *NETWORKS]),
    help="Compare an invoice with what this provider takes.",
)
@click.option("--deposits", is_flag=True, help="Compare a bank's statement with the deposits.")
@click.option("--month", type=Month(), help="Expect only what is of this month in the file.")
@click.option("--by", type=click.Choice(["day", "month"]), help="Compare sums; see below.")
@click.option("--reference", help="The column of it; default: reference.")
@click.option("--amount", help="The column of it; default: amount.")
@click.option("--currency-column", help="The column of currencies.")
@click.option("--currency", help="That of all amounts; default: CURRENCY.")
@click.option("--only", type=Only(), help="Only lines with this value in that column.")
@click.option("--decimal", type=click.Choice(["point", "comma"]), help="Default: the file tells.")
@click.option("--encoding", help="Default: UTF-8, or UTF-16 with its mark.")
@as_json_option
@click.pass_context
def reconcile(  # noqa: PLR0913  # Each argument is an option of the command.
    context: click.Context,
    /,
    *,
    file: IO[bytes],
    provider: str | None,
    deposits: bool,
    month: datetime | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare a CSV file of references and amounts with the log; `-` is the standard input.

    Tells what is missing there or here, and what has another amount; then exits with 1. Also
    tells what nobody has, though a network takes its price. Lines of one reference are added up,
    but for deposits of several organizations under one, which need a line each.
    Of a bank's statement only what was paid in counts, and what went back of it. With --by the
    references are dates, and what a provider takes is added up by day or month (UTC), also for
    lookups, which have no reference.
    """
    if deposits == (provider is not None):
        raise click.UsageError(ONE_OF_BOTH)
    known = INVOICES.get(provider or "", {})
    options = {name: known.get(name) if value is None else value for name, value in given.items()}
    data = file.read(FILE_BYTES_MAX + 1)
    wanted = month_of(month) if month is not None else None
    with installation() as container, watched("Reading") as progress:
        layout = _layout(container.settings.currency, **options)
        try:
            theirs = read_amounts(data, layout)
            if provider is None:
                ours = [*deposits_of(container.log, progress)]
                found = compare(_of_deposits(theirs, ours), ours, wanted, _shared(ours))
            else:
                found = _of_provider(container.log, theirs, provider, options, progress, wanted)
        except WrongFile as wrong:
            raise Refusals(wrong.lines) from wrong
    _show(found, as_json=as_json)
    if not found.ok:
        context.exit(1)


def _of_provider(  # noqa: PLR0913  # Each is what the comparison needs.
    log: Log,
    theirs: Sequence[Theirs],
    provider: str,
    options: Mapping[str, Any],
    progress: Progress,
    month: str | None,
) -> Reconciliation:
    period: Period | None = options["by"]
    if period is None:
        return compare(theirs, costs_of(log, provider, progress), month)
    ours = sums_of(log, provider, period, progress)
    return compare(by_period(theirs, period), ours, month)


def _of_deposits(theirs: Sequence[Theirs], ours: Sequence[Ours]) -> list[Theirs]:
    """Leave out what the bank has paid to others, but keep what it took back of a deposit."""
    known = {each.reference for each in ours}
    return [each for each in theirs if each.amount_micros > 0 or each.reference in known]


def _shared(ours: Sequence[Ours]) -> set[str]:
    """Return the references that several organizations use; within one each is unique."""
    return {name for name, count in Counter(each.reference for each in ours).items() if count > 1}


def _layout(own: str, **options: Any) -> Layout:
    decimal = options["decimal"]
    return Layout(
        reference=options["reference"] or "reference",
        amount=options["amount"] or "amount",
        currency_column=options["currency_column"],
        currency=options["currency"] or own,
        decimal=None if decimal is None else "." if decimal == "point" else ",",
        encoding=options["encoding"],
        only=options["only"],
    )


def _show(found: Reconciliation, *, as_json: bool) -> None:
    rows = {
        "missing_here": [_missing(each, {"line": each.line}) for each in found.missing_here],
        "missing_there": [
            _missing(each, {"position": each.position, "at": each.at})
            for each in found.missing_there
        ],
        "different": [
            {
                "line": theirs.line,
                "position": ours.position,
                "reference": ours.reference,
                "there": _money(theirs),
                "here": _money(ours),
            }
            for theirs, ours in found.different
        ],
        "left_over": [
            _missing(each, {"position": each.position, "at": each.at}) for each in found.left_over
        ],
    }
    show_parts({"ok": found.ok, "matched": found.matched}, rows, as_json=as_json)


def _missing(each: Theirs | Ours, place: Facts) -> Facts:
    return {**place, "reference": each.reference, **_money(each)}


def _money(each: Theirs | Ours) -> Facts:
    micros = each.amount_micros
    return {"amount": None if micros is None else format_amount(micros), "currency": each.currency}
