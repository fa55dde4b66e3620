"""`installation`: copies of an installation, which act on nothing until they are released."""

import click

from app.cli.installation import cause_of, installation
from app.cli.output import as_json_option, show

TOLD_AGAIN = (
    "It acts within seconds. Webhooks go on where the copy was made; where their position was not "
    "copied, events of the last 72 hours are told again, with the same ids."
)


@click.group(name="installation")
def command() -> None:
    """Hold a copy of an installation, and release it.

    A held copy answers reads and audits. It tells no webhook, calls no network, brings no
    checkpoint, closes no month and charges nothing. What `restore` made is held.
    """


@command.command()
@as_json_option
def hold(*, as_json: bool) -> None:
    """Hold this copy, which the database's own tools made, before its first process starts."""
    _switch(held=True, as_json=as_json)


@command.command()
@as_json_option
def release(*, as_json: bool) -> None:
    """Let this copy act on the world, because it takes the place of the installation."""
    if _switch(held=False, as_json=as_json) and not as_json:
        click.echo(TOLD_AGAIN)


def _switch(*, held: bool, as_json: bool) -> bool:
    with installation() as container:
        changed = container.hold.switch(cause_of(container), held=held)
    show({"held": held, "changed": changed}, as_json=as_json)
    return changed
