"""`backup`: a copy of everything that cannot be rebuilt."""

from pathlib import Path

import click
from sqlalchemy.exc import SQLAlchemyError

from app.bootstrap.container import Container
from app.cli.installation import installation
from app.cli.output import as_json_option, show
from app.processes.backup import Manifest, back_up


@click.command(name="backup")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@as_json_option
def command(*, directory: Path, as_json: bool) -> None:
    """Copy everything that cannot be rebuilt into DIR, while the service runs.

    DIR is created, complete or not at all. It holds secrets, and only you can read it. On
    PostgreSQL the server's own program copies the database; this command prints what to run next.
    """
    with installation(migrated=False) as container:
        container.clock_check.require()
        manifest = back_up(container, directory)
        commands = container.persistence.dump_commands(directory.absolute())
        noted = _note(container, manifest)
    facts = {"backup": directory, "position": manifest.position, "files": len(manifest.files)}
    if as_json:
        show({**facts, "backup": str(directory), "commands": commands}, as_json=True)
    else:
        show(facts, as_json=False)
        if commands:
            dump, restore = commands
            click.echo(f"\nNow copy the database itself:\n\n{dump}\n")
            click.echo(f"Its way back, into an empty database, and then `restore`:\n\n{restore}")
    if not noted:
        click.echo("Warning: `doctor` will not know of this backup: run migrate", err=True)


def _note(container: Container, manifest: Manifest) -> bool:
    """Tell `doctor` of the backup; False where there is no table for it."""
    try:
        container.notes.replace("backup", str(manifest.position), manifest.made_at)
    except SQLAlchemyError:
        return False
    return True
