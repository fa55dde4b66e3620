"""`providers`: lookup providers and networks, and which of them get new work."""

import click

from app.bootstrap.providers import LOOKUPS, NETWORKS
from app.cli.installation import cause_of, installation
from app.cli.output import as_json_option, show

name_argument = click.argument("name", metavar="NAME", type=click.Choice([*LOOKUPS, *NETWORKS]))


@click.group(name="providers")
def command() -> None:
    """Lookup providers and networks: which of them get new work."""


@command.command()
@name_argument
@as_json_option
def drain(*, name: str, as_json: bool) -> None:
    """Give a provider no new work; what is open is finished.

    Lookups go to the next provider of LOOKUP_PROVIDER; without one they are answered 503. Plans of
    a network cannot be bought, and its links are read and switched as ever. Every process knows
    within a second or two.
    """
    _switch(name, drained=True, as_json=as_json)


@command.command()
@name_argument
@as_json_option
def resume(*, name: str, as_json: bool) -> None:
    """Give a provider new work again."""
    _switch(name, drained=False, as_json=as_json)


def _switch(name: str, *, drained: bool, as_json: bool) -> None:
    with installation() as container:
        known = container.drains.switch(name, cause_of(container), drained=drained)
    by = known.drained
    told = {"since": by and by.timestamp, "by": by and by.actor}
    show({"provider": name, "drained": by is not None, **told}, as_json=as_json)
