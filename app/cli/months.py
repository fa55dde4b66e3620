"""`months`: the months of the books."""

from datetime import datetime

import click

from app.cli.arguments import Month
from app.cli.installation import cause_of, installation
from app.cli.output import as_json_option, show
from domain.months import month_of


@click.group(name="months")
def command() -> None:
    """The months of the books."""


@command.command()
@click.argument("month", metavar="YYYY-MM", type=Month())
@as_json_option
def close(*, month: datetime, as_json: bool) -> None:
    """Close a month that has ended, for ever, where the clock does not.

    The clock closes no month, and charges no fee, when the installation seems to have been dead for
    more than a day. Look at the time first: this says that it is right, so both go on.
    """
    with installation() as container:
        cause = cause_of(container)
        container.month_end.close(month_of(month), cause)
    show({"month": month_of(month), "closed_at": cause.at}, as_json=as_json)
