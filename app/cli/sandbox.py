"""`sandbox`: the simulated network of a sandbox."""

from datetime import timedelta

import click

from app.cli.installation import installation
from app.cli.output import as_json_option, show
from domain.catalogue.plan import SIMULATED
from domain.errors import NotPossible

HOURS_MAX = 8_760  # A year; together ten, so that every moment stays a valid date.
AHEAD_MAX = timedelta(hours=10 * HOURS_MAX)


@click.group(name="sandbox")
def command() -> None:
    """The simulated network of a sandbox."""


@command.command()
@click.argument("hours", type=click.IntRange(1, HOURS_MAX))
@as_json_option
def advance(hours: int, *, as_json: bool) -> None:
    """Let HOURS pass at the simulated network, in all processes at once.

    Data are used up and plans expire; all links are read anew within seconds, so that partners are
    told. Only the network's time moves: what it tells lies as much further in the past, and the log
    knows nothing of it. It cannot be taken back. Refused unless SANDBOX is on.
    """
    by = timedelta(hours=hours)
    with installation() as container:
        if not container.settings.sandbox:
            message = "SANDBOX is off, and the time of a real network cannot be moved"
            raise NotPossible(message)
        if container.simulated_clock.ahead() + by > AHEAD_MAX:
            message = "the simulated network would be more than ten years ahead"
            raise NotPossible(message)
        ahead = container.simulated_clock.advance(by)
        container.reading_turns.hasten(SIMULATED)
    show({"hours": hours, "ahead_hours": ahead // timedelta(hours=1)}, as_json=as_json)
