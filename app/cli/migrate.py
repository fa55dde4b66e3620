"""`migrate`: the tables of an installation."""

from threading import Event

import click

from app.bootstrap.container import Container
from app.cli.installation import installation
from app.cli.output import as_json_option, show, watched
from app.processes.doctor import announce, split_database
from app.processes.migrate import migrate
from app.processes.readiness import wait_until_reached
from app.processes.stopping import stop_on_signals
from app.watch.logging import configure_logging

# Honcho sets it for each process: the name in the Procfile and the number of the copy.
SUPERVISED = "HONCHO_PROCESS_NAME"


@click.command(name="migrate")
@click.option("--process", envvar=SUPERVISED, default="", hidden=True)
@as_json_option
def command(*, process: str, as_json: bool) -> None:
    """Create or upgrade every table.

    Safe to run twice, on two machines at once, and while the service runs. Read models that are
    new, changed or of another log are built from the log; `built` names them.

    As `release` under honcho it waits for the database and, once it is done, stays until SIGTERM,
    because honcho ends everything as soon as one process ends.
    """
    stop = stop_on_signals(cut_off_after_s=None) if process.startswith("release.") else None
    with installation(migrated=False) as container:
        container.role = "migrate"
        if (split := split_database(container.settings)) is not None:
            _warn(split)
        if stop is not None and not _is_reached(container, stop):
            return
        container.clock_check.require()
        with watched("Building read models") as progress:
            built = migrate(container, progress, _warn)
    show({"built": built}, as_json=as_json)
    if stop is not None:
        click.echo("The tables are up to date. Staying until SIGTERM.", err=as_json)
        stop.wait()


def _warn(line: str) -> None:
    click.echo(f"Warning: {line}", err=True)


def _is_reached(container: Container, stop: Event) -> bool:
    configure_logging(container.settings.log_format)
    announce(container)
    return wait_until_reached(container, stop)
