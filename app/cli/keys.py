"""`keys`: the keys that sign tokens."""

from dataclasses import asdict

import click

from app.cli.installation import installation
from app.cli.output import as_json_option, show, show_list


@click.group(name="keys")
def command() -> None:
    """The keys that sign tokens."""


@command.command()
@as_json_option
def rotate(*, as_json: bool) -> None:
    """Sign with a new key from now on; older keys verify until their last token has expired."""
    with installation(migrated=False) as container:
        kid = container.keys.rotate()
        made = next(key for key in container.keys.list() if key.kid == kid)
    show(asdict(made), as_json=as_json)


@command.command(name="list")
@as_json_option
def list_all(*, as_json: bool) -> None:
    """List all keys, oldest first."""
    with installation(migrated=False) as container:
        keys = [asdict(key) for key in container.keys.list()]
    show_list(keys, as_json=as_json)
