"""`migrate`: the tables of an installation."""

import click

from app.cli.installation import installation
from app.cli.output import as_json_option, show
from app.cli.progress import watched
from app.migrate import migrate


@click.command(name="migrate")
@as_json_option
def command(*, as_json: bool) -> None:
    """Create or upgrade every table.

    Safe to run twice, from two machines at once and while the service runs. Read models that are
    new, changed or of another log are built from the log; `built` names them.
    """
    with installation(migrated=False) as container, watched("Building read models") as progress:
        built = migrate(container, progress)
    show({"built": built}, as_json=as_json)
