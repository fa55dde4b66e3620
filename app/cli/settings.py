"""`settings`: shows the settings; it opens nothing, so it works when all else fails."""

import click

from app.bootstrap.providers import require_known
from app.cli.output import as_json_option, show_list
from app.settings import Settings, WrongSetting


@click.command(name="settings")
@as_json_option
def command(*, as_json: bool) -> None:
    """Print every setting with its value, default and meaning.

    Settings are environment variables. Each can also stand in a file, which the variable of its
    name with _FILE names. Secrets are masked.
    """
    try:
        settings = Settings.load()
        require_known(settings)
    except WrongSetting as error:
        raise click.ClickException(str(error)) from error
    show_list(settings.describe(), as_json=as_json)
