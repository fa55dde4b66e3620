"""`serve`: everything in one process."""

from dataclasses import asdict, replace

import click

from app.cli.installation import installation, unchanged
from app.cli.output import as_json_option, show
from app.cli.progress import watched
from app.container import Container
from app.demo import Demo, prepare_demo
from app.migrate import migrate
from app.observability import configure_logging
from app.serving import CannotServe, serve
from app.settings import Settings

DEMO_PRICE_MICROS = 5_000  # Where lookups would be free there would be nothing to see.


@click.command(name="serve")
@click.option("--demo", is_flag=True, help="Make a demo organization and print its credentials.")
@as_json_option
def command(*, demo: bool, as_json: bool) -> None:
    """Serve HTTP and do all the work in this one process.

    Migrates first. With --demo it serves a sandbox: once it makes an organization, a wallet that
    holds 100.00 and a client; at each start the client gets a new secret, which is printed.
    """
    with installation(migrated=False, adapt=_for_demo if demo else unchanged) as container:
        configure_logging(container.settings.log_format)
        with watched("Building read models") as progress:
            migrate(container, progress)
        try:
            # The demo waits until the port is ours: a second `serve` must not change the secret.
            serve(container, lambda: _introduce(container, as_json=as_json) if demo else None)
        except CannotServe as error:
            raise click.ClickException(str(error)) from error


def _for_demo(settings: Settings) -> Settings:
    price_micros = settings.price_per_lookup_micros or DEMO_PRICE_MICROS
    return replace(settings, sandbox=True, price_per_lookup_micros=price_micros)


def _introduce(container: Container, *, as_json: bool) -> None:
    demo = prepare_demo(container)
    show(asdict(demo), as_json=as_json)
    if not as_json:
        click.echo(_first_steps(demo, container.settings))


def _first_steps(demo: Demo, settings: Settings) -> str:
    return f"""
Get a token, then look a number up:

TOKEN=$(curl -s -u {demo.client_id}:{demo.client_secret} \\
  -d grant_type=client_credentials {settings.auth}/auth/token \\
  | python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')
curl -s -X POST -H "Authorization: Bearer $TOKEN" \\
  "{settings.numbers}/number-lookup?phone_number=%2B14155552671"
"""
