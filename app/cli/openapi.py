"""`openapi`: prints the OpenAPI document of this installation; it connects to nothing."""

import json

import click

from app.cli.installation import installation
from app.cli.output import as_json_option
from app.http.application import create_app
from app.http.docs import DOCUMENT


@click.command(name="openapi")
@as_json_option
def command(*, as_json: bool) -> None:
    """Print the OpenAPI document.

    It is the one at /openapi.json, with the URLs of the settings; `--json` prints it on one line.
    """
    with installation(migrated=False) as container:
        document = json.loads(create_app(container).extensions[DOCUMENT][""])
    click.echo(json.dumps(document, ensure_ascii=False, indent=None if as_json else 2))
