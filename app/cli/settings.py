"""`settings`: shows the settings; it opens nothing, so it works when all else fails."""

from typing import Any

import click

from app.bootstrap.providers import require_known
from app.cli.operation import Subject
from app.settings import Settings, WrongSetting

subject = Subject()


@subject.command("settings", right=None, on=None)
def show_settings() -> list[Any]:
    """Print every setting with its value, default and meaning.

    Settings are environment variables. Each can also stand in a file, which the variable of its
    name with _FILE names. Secrets are masked.
    """
    try:
        settings = Settings.load()
        require_known(settings)
    except WrongSetting as error:
        raise click.ClickException(str(error)) from error
    return [*settings.describe()]
