"""`audit`: checks of the log and of all that is built from it."""

from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import click

from app.cli.audit_accounts import margin, trial_balance
from app.cli.audit_books import balance, replay, statement
from app.cli.audit_checkpoints import NOTE, NOTES, Notes, check_behind, make_checkpoint
from app.cli.audit_export import export_log, import_file
from app.cli.audit_proof import check, prove
from app.cli.audit_reconcile import reconcile
from app.cli.installation import installation
from app.cli.output import as_json_option, show, watched
from app.cli.terminal import one_line
from app.processes.memory import collect_seldom
from projections.audit.auditor import verify as audit
from projections.audit.report import Report


@click.group(name="audit")
def command() -> None:
    """Checks of the log and of all that is built from it."""
    collect_seldom()


command.add_command(export_log)
command.add_command(make_checkpoint)
command.add_command(import_file)
command.add_command(prove)
command.add_command(check)
command.add_command(margin)
command.add_command(trial_balance)
command.add_command(statement)
command.add_command(balance)
command.add_command(replay)
command.add_command(reconcile)


@command.command()
@click.option(
    "--against",
    multiple=True,
    type=NOTES,
    help="A checkpoint that somebody has kept, or a directory of them; more may follow.",
)
@click.option(
    "--from", "trusted", type=NOTE, help="Begin behind a checkpoint; what is before is trusted."
)
@click.option("--key", multiple=True, help="A verifier key, as `keys list` has once printed it.")
@click.argument("more", nargs=-1, type=NOTES, metavar="[CHECKPOINT]...")
@as_json_option
@click.pass_context
def verify(  # noqa: PLR0913  # Its options.
    context: click.Context,
    *,
    against: tuple[Path, ...],
    trusted: Path | None,
    key: tuple[str, ...],
    more: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Check the whole log, every invariant, and that every read model equals its rebuild.

    Also that each event is what it was when it was first seen, and each checkpoint that was signed
    here. --against recomputes the tree from the first event and holds it against checkpoints
    that others have kept: it names the first that fails, and the range back to the last that
    holds, and the newest events that none of them covers. --from begins behind one, and then checks
    order, kept events and later checkpoints only.

    Exits with 1 when something is wrong, and names the first positions that fail.
    """
    if more and not against:
        message = "checkpoints are given after --against"
        raise click.UsageError(message)
    notes = Notes.read([*against, *more], key)
    # The audit itself reports a log that was cut short, so read models of another log do not stop
    # it.
    with installation(same_log=False) as container, watched("Checking") as progress:
        if trusted is not None:
            report = check_behind(container, trusted, notes, progress)
        else:
            container.projector.catch_up()
            parts = (container.log, container.views, container.positions, container.models)
            report = audit(*parts, progress, [*container.witnesses(), notes.claims(container)])
    _show(report, as_json=as_json)
    if not report.ok:
        context.exit(1)


def _show(report: Report, *, as_json: bool) -> None:
    facts = {
        "ok": report.ok,
        "events": report.events,
        "position": report.position,
        "leaves": report.leaves,
        "trusted": report.trusted or None,
        "explained": report.explained,
    }
    if as_json:
        told: dict[str, list[Any]] = {
            "losses": report.losses,
            "failures": report.failures,
            "checkpoints": report.checkpoints,
        }
        lists = {name: [asdict(each) for each in found] for name, found in told.items()}
        uncovered = None if report.uncovered is None else asdict(report.uncovered)
        show({**facts, **lists, "uncovered": uncovered}, as_json=True)
        return
    show(facts, as_json=False)
    _say(report)


def _say(report: Report) -> None:
    """Say in words what the figures do not."""
    if report.trusted:
        click.echo(
            f"Nothing up to position {report.trusted} was looked at: the checkpoint is trusted."
        )
    for verdict in report.checkpoints:
        click.echo(one_line(f"{verdict.name}: {'holds' if verdict.holds else verdict.reason}"))
    if report.uncovered is not None and report.uncovered.events:
        behind, (events, first, last) = "no given checkpoint covers", astuple(report.uncovered)
        click.echo(f"{behind} the newest {events} events, positions {first} to {last}")
    for loss in report.losses:
        click.echo(one_line(f"known loss, position {loss.position}: {loss.reason}"))
    if report.explained:
        rest = (
            "1 checkpoint rests"
            if report.explained == 1
            else f"{report.explained} checkpoints rest"
        )
        click.echo(
            f"{rest} on the word of the log alone, which says that events were lost: "
            "ask operations about each loss."
        )
    for failure in report.failures:
        click.echo(one_line(f"position {failure.position}: {failure.reason}"))
