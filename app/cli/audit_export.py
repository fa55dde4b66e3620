"""`audit export` and `audit import`: the log as a file, and an installation made of it."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Literal

import click
import msgspec

from app.cli.arguments import selecting
from app.cli.installation import installation, require_organization
from app.cli.output import as_json_option, show, watched, written
from app.http.accounts.table import COLUMNS, cells
from app.http.edge.media import csv_blocks
from app.processes.importing import import_log, range_of
from domain.log.log import Log
from projections.audit.beancount import ledger_lines
from projections.audit.export import Export
from projections.audit.selection import Selection
from projections.audit.walk import walk
from projections.engine.rebuild import Progress
from projections.models.transactions import REPLAYED, replayed

Form = Literal["jsonl", "csv", "beancount"]
NO_FACTS = "--json needs --out: without it the standard output is the export"
PART = "a part of jsonl needs --out: what tells it from a whole log goes into a file beside it"
ALL_EVENTS = "jsonl has all events: give --from and --to as positions, and no --org"


@click.command(name="export")
@click.option("--format", "form", type=click.Choice(["jsonl", "csv", "beancount"]), default="jsonl")
@selecting
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write it here.")
@as_json_option
def export_log(*, form: Form, selection: Selection, out: Path | None, as_json: bool) -> None:
    """Write the log as lines of JSON, or what it says about money in other forms.

    jsonl: a line for each event with its place, its stored bytes, and its leaf. Beside a part goes
    FILE.range.json with what an auditor needs of the tree before it. csv: every transaction in the
    order of the log. beancount: a ledger in double entry.

    To the standard output, or with --out to a file that is there only once it is whole.
    """
    if out is None and as_json:
        raise click.UsageError(NO_FACTS)
    if form == "jsonl":
        first, last = _positions(selection)
        if out is None and (first is not None or last is not None):
            raise click.UsageError(PART)
        facts = _export_events(first, last, out)
    else:
        _export_entries(_table if form == "csv" else ledger_lines, selection, out)
        facts = {"format": form}
    if out is not None:
        show(facts, as_json=as_json)


def _positions(selection: Selection) -> tuple[int | None, int | None]:
    first, last = selection.since, selection.until
    if isinstance(first, datetime) or isinstance(last, datetime) or selection.organization_id:
        raise click.UsageError(ALL_EVENTS)
    return first, last


def _export_entries(
    make: Callable[[Log, Selection, Progress], Iterator[bytes]],
    selection: Selection,
    out: Path | None,
) -> None:
    with installation() as container, watched("Exporting") as progress:
        require_organization(container, selection.organization_id)
        with written(out) as file:
            file.writelines(make(container.log, selection, progress))


def _table(log: Log, selection: Selection, progress: Progress) -> Iterator[bytes]:
    """Yield the transactions as partners get them, with their organization and their actor."""
    entries = replayed(walk(log, REPLAYED, progress, selection.last_position))
    rows = (
        (entry.organization_id, *cells(entry), actor)
        for entry, actor in entries
        if selection.wants(entry.organization_id, entry.charged_at, entry.position)
    )
    return csv_blocks(("organization", *COLUMNS, "actor"), rows)


def _export_events(first: int | None, last: int | None, out: Path | None) -> dict[str, object]:
    with installation() as container, watched("Exporting") as progress:
        head = container.log.head()
        export = Export(container.log, head if last is None else min(last, head), progress)
        before = export.skip_to(first or 1)
        if out is not None:
            range_of(out).unlink(missing_ok=True)  # Of an earlier export by this name.
            if first is not None or last is not None:
                with written(range_of(out)) as file:
                    file.write(msgspec.json.encode(before) + b"\n")
        with written(out) as file:
            file.writelines(export.lines())
    facts = {"events": export.events, "position": export.position}
    return {**facts, "size": export.tree.size, "root": export.tree.root().hex()}


@click.command(name="import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@as_json_option
@click.pass_context
def import_file(context: click.Context, *, file: Path, as_json: bool) -> None:
    """Make an installation of an export, in the empty place that the settings name, and check it.

    All of the log or nothing: a part, or a line that is not as it was exported, is refused. Exits
    with 1 when the log breaks an invariant, as `audit verify` does.
    """
    with installation(migrated=False) as container, watched("Importing") as progress:
        report = import_log(container, file, progress)
    facts = {"ok": report.ok, "events": report.events, "position": report.position}
    failures = [asdict(each) for each in report.failures]
    show({**facts, "failures": failures} if as_json else facts, as_json=as_json)
    if not report.ok:
        context.exit(1)
