"""`audit`: checks of the log and of all that is built from it."""

from dataclasses import asdict

import click

from app.cli.installation import installation
from app.cli.output import as_json_option, show, watched
from projections.audit.auditor import Report
from projections.audit.auditor import verify as audit


@click.group(name="audit")
def command() -> None:
    """Checks of the log and of all that is built from it."""


@command.command()
@as_json_option
@click.pass_context
def verify(context: click.Context, *, as_json: bool) -> None:
    """Check the whole log, every invariant, and that every read model equals its rebuild.

    Exits with 1 when something is wrong, and names the first positions that fail.
    """
    # The audit itself reports a log that was cut short, so read models of another log do not stop
    # it.
    with installation(same_log=False) as container, watched("Checking") as progress:
        container.projector.catch_up()
        report = audit(
            container.log, container.views, container.positions, container.models, progress
        )
    _show(report, as_json=as_json)
    if not report.ok:
        context.exit(1)


def _show(report: Report, *, as_json: bool) -> None:
    facts = {"ok": report.ok, "events": report.events, "position": report.position}
    if as_json:
        told = {"losses": report.losses, "failures": report.failures}
        lists = {name: [asdict(each) for each in found] for name, found in told.items()}
        show({**facts, **lists}, as_json=True)
        return
    show(facts, as_json=False)
    for loss in report.losses:
        click.echo(f"known loss, position {loss.position}: {loss.reason}")
    for failure in report.failures:
        click.echo(f"position {failure.position}: {failure.reason}")
