"""`finance`: pages for people of finance, on this machine alone."""

from urllib.parse import urlsplit

import click
from sqlalchemy.exc import SQLAlchemyError

from app.bootstrap.container import Container
from app.cli.installation import installation
from app.cli.output import as_json_option, show
from app.processes.finance import serve_finance
from app.watch.logging import configure_logging
from app.watch.trouble import NOT_MIGRATED, trouble_of

PORT = 8090
PORT_MAX = 65_535


@click.command(name="finance")
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MAX),
    default=PORT,
    show_default=True,
    help="The port on 127.0.0.1; 0 for any.",
)
@as_json_option
def command(*, port: int, as_json: bool) -> None:
    """Show wallets, transactions and sums in the browser, read-only.

    Prints an address that opens the pages once, in one browser, and serves on 127.0.0.1 until
    Ctrl-C. From another machine: ssh -L 8090:127.0.0.1:8090 HOST, then open the address there.
    It reads through FINANCE_DATABASE_URL, or DATABASE_URL in a session that can only read.
    """
    with installation(migrated=False) as container:
        configure_logging(container.settings.log_format)
        if not container.settings.finance_database_url and not container.persistence.exists():
            raise click.ClickException(NOT_MIGRATED)
        try:
            serve_finance(container, port, lambda url: _introduce(url, as_json=as_json))
        except SQLAlchemyError as error:
            raise click.ClickException(_line(container, error)) from error


def _introduce(url: str, *, as_json: bool) -> None:
    if as_json:
        show({"url": url, "port": urlsplit(url).port}, as_json=True)
    else:
        click.echo(f"Open this address; it opens once. Ctrl-C ends the pages.\n\n    {url}\n")


def _line(container: Container, error: SQLAlchemyError) -> str:
    own = container.settings.finance_database_url
    name, place = (
        ("FINANCE_DATABASE_URL", "it") if own else ("DATABASE_URL", container.persistence.place)
    )
    return f"{name}: {trouble_of(error, place)}"
