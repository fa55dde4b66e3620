"""`doctor`: what is not ready for production."""

from dataclasses import asdict

import click

from app.cli.installation import installation
from app.cli.output import as_json_option, show, show_list
from app.processes.doctor import examine


@click.command(name="doctor")
@as_json_option
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """Say in words what is not ready for production.

    Exits with 1 when there is a fault; advice may be declined. Changes nothing.
    """
    with installation(migrated=False) as container:
        findings = examine(container)
    ok = all(each.severity != "fault" for each in findings)
    rows = [asdict(each) for each in findings]
    if as_json:
        show({"ok": ok, "data": rows}, as_json=True)
    elif rows:
        show_list(rows, as_json=False)
    else:
        click.echo("Nothing stands in the way.")
    if not ok:
        context.exit(1)
