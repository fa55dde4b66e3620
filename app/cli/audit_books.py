"""`audit statement`, `balance` and `replay`: the books, from the log alone."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import msgspec

from app.bootstrap.container import Container
from app.cli.arguments import Month, Point, organization_argument, selecting
from app.cli.installation import installation, require_organization
from app.cli.output import as_json_option, named, show, show_list, show_stream, watched, written
from app.http.accounts.replies import show_transaction
from app.http.finance.replies import show_statement
from domain.errors import NotPossible
from domain.money import format_amount
from domain.months import month_of
from projections.audit.selection import Selection
from projections.audit.statements import MonthsStatements, balance_of, everybody, statements_of
from projections.audit.walk import walk
from projections.models.transactions import REPLAYED, Transaction, replayed

NO_STATEMENT = "no statement: the organization had no transaction by then, or the month is to come"
NO_WALLET = "this organization had no wallet then"
ONE_OR_ALL = "give ORG and YYYY-MM, or --all YYYY-MM and --out DIR"


@click.command(name="statement")
@click.argument("organization_id", metavar="[ORG", type=click.UUID, required=False)
@click.argument("month", metavar="YYYY-MM]", type=Month(), required=False)
@click.option("--all", "every", type=Month(), help="The statements of all organizations.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Where --all goes.")
@as_json_option
def statement(
    *,
    organization_id: UUID | None,
    month: datetime | None,
    every: datetime | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Make the statement of a month from the log, as the organization gets it.

    With --all one file for each organization, ORG-YYYY-MM.json, in one pass through the log.
    """
    if every is not None and out is not None and organization_id is None:
        _write_all(month_of(every), out, as_json=as_json)
    elif every is None and out is None and organization_id is not None and month is not None:
        _show_one(organization_id, month_of(month), as_json=as_json)
    else:
        raise click.UsageError(ONE_OR_ALL)


def _show_one(organization_id: UUID, month: str, *, as_json: bool) -> None:
    with installation(same_log=False) as container, watched("Reading") as progress:
        require_organization(container, organization_id)
        found = statements_of(container.log, month, organization_id.__eq__, progress)
        if not found.statements:
            raise NotPossible(NO_STATEMENT)
        (facts,) = _facts(container, found)
    lines = facts["lines"]
    show(facts if as_json else {**facts, "lines": len(lines)}, as_json=as_json)
    if lines and not as_json:
        click.echo()
        show_list(lines, as_json=False)


def _write_all(month: str, out: Path, *, as_json: bool) -> None:
    with installation(same_log=False) as container, watched("Reading") as progress:
        found = statements_of(container.log, month, everybody, progress)
        out.mkdir(parents=True, exist_ok=True)
        for facts in _facts(container, found):
            file = out / f"{facts['organization']}-{month}.json"
            with written(file) as target:
                target.write(msgspec.json.encode(facts) + b"\n")
    told = {"month": month, "final": found.is_final, "statements": len(found.statements)}
    show({**told, "out": str(out)}, as_json=as_json)


def _facts(container: Container, found: MonthsStatements) -> Iterator[dict[str, Any]]:
    checkpoint = container.statement_checkpoint(found.closed_at)
    for each in found.statements:
        shown = show_statement(each, is_final=found.is_final, checkpoint=checkpoint)
        yield msgspec.to_builtins(shown)


@click.command()
@organization_argument
@click.option("--at", type=Point(), help="After this position, or at this time.")
@as_json_option
def balance(*, organization_id: UUID, at: datetime | int | None, as_json: bool) -> None:
    """Tell what a wallet holds, or held, by its entries in the log.

    `position` is that of the last entry that counts. An entry that is dated before the one ahead
    of it counts as of that one.
    """
    with installation(same_log=False) as container, watched("Reading") as progress:
        require_organization(container, organization_id)
        found = balance_of(container.log, organization_id, at, progress)
        if found is None:
            raise NotPossible(NO_WALLET)
    facts = {
        "organization": found.organization_id,
        "balance": format_amount(found.balance_micros),
        "currency": found.currency,
        "position": found.position,
    }
    show(facts, as_json=as_json)


@click.command()
@selecting
@as_json_option
def replay(*, selection: Selection, as_json: bool) -> None:
    """Print every transaction in the order of the log, with who made it by a command.

    Times are those of `charged_at`.
    """
    with installation(same_log=False) as container, watched("Reading") as progress:
        require_organization(container, selection.organization_id)
        found = replayed(walk(container.log, REPLAYED, progress, selection.last_position))
        names = container.operators.names()
        rows = (
            named(_row(entry, actor), "actor", names, as_json=as_json)
            for entry, actor in found
            if selection.wants(entry.organization_id, entry.charged_at, entry.position)
        )
        show_stream(rows, _line, as_json=as_json)


def _row(entry: Transaction, actor: str | None) -> dict[str, Any]:
    shown = msgspec.to_builtins(show_transaction(entry))
    return {"organization": str(entry.organization_id), **shown, "actor": actor}


def _line(row: Mapping[str, Any]) -> str:
    amount = f"{'-' if row['direction'] == 'debit' else '+'}{row['amount']}"
    facts = (row["position"], row["charged_at"], row["organization"], row["sequence"], row["kind"])
    told = (amount, row["currency"], row["balance_after"], row["id"], row["actor"] or "-")
    return "  ".join(map(str, (*facts, *told)))
