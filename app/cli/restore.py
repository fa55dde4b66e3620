"""`restore`: makes an installation from a backup."""

from dataclasses import asdict
from pathlib import Path

import click

from app.cli.installation import installation
from app.cli.output import as_json_option, show, watched
from app.cli.terminal import one_line
from app.processes.backup import Restored, restore

HELD = (
    "The copy is held: it acts on nothing. If it takes the place of the installation, run: "
    "python -m app installation release"
)
AGAIN = "The keys are in place. Now restore the database, then run this command again:"


@click.command(name="restore")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@as_json_option
@click.pass_context
def command(context: click.Context, *, directory: Path, as_json: bool) -> None:
    """Put the backup in DIR into the empty place that the settings name, and check it.

    Nothing that exists is overwritten. On PostgreSQL restore the dump first, with the command that
    `backup` has printed. The copy is held, because the living installation may still be there; see
    `installation`. Ends as `audit verify` does: with 1 if something is wrong.
    """
    with installation(migrated=False) as container, watched("Building and checking") as progress:
        done = restore(container, directory, progress)
        command = container.persistence.dump_commands(directory.absolute())[-1:]
    for warning in done.warnings:
        click.echo(f"Warning: {warning}", err=True)
    _show(done, directory, command if done.report is None else [], as_json=as_json)
    if done.report is None or not done.report.ok:
        context.exit(1)


def _show(done: Restored, directory: Path, commands: list[str], *, as_json: bool) -> None:
    report = done.report
    if report is None and not as_json:
        click.echo(f"{AGAIN}\n\n{commands[0]}")
        return
    facts = {
        "restored": str(directory),
        "ok": report is not None and report.ok,
        "events": 0 if report is None else report.events,
        "position": 0 if report is None else report.position,
        "held": report is not None,
    }
    failures = [] if report is None else report.failures
    if as_json:
        failed = [asdict(each) for each in failures]
        show({**facts, "failures": failed, "commands": commands}, as_json=True)
        return
    show(facts, as_json=False)
    click.echo(HELD)
    for failure in failures:
        click.echo(one_line(f"position {failure.position}: {failure.reason}"))
