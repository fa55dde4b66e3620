"""`settings`: shows the settings, for which it opens nothing, so it works when all else fails."""

from typing import Any

import click

from app.bootstrap.providers import require_known
from app.bootstrap.shared_settings import SharedSettings
from app.cli.operation import Subject
from app.cli.output import show
from app.cli.session import Session
from app.settings import Settings, WrongSetting
from domain.accounts.currency import Currency

MORE = """Settings are environment variables. Each can also stand in a file, which the variable of
its name with _FILE names. Secrets are masked."""

subject = Subject()
settings = subject.add("settings", MORE)
settings.invoke_without_command, settings.no_args_is_help = True, False
settings.params = [click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")]


@click.pass_context
def show_settings(context: click.Context, *, as_json: bool) -> None:
    """Print every setting, unless a command follows."""
    if context.invoked_subcommand is None:
        try:
            read = Settings.load()
            require_known(read)
        except WrongSetting as error:
            raise click.ClickException(str(error)) from error
        show([*read.describe()], as_json=as_json)


settings.callback = show_settings


@settings.command("adopt", right="keys")
def adopt_settings(session: Session) -> list[dict[str, Any]]:
    """Record the values of this environment as those of all processes.

    They are the issuer and the audience of tokens, the algorithm of keys, CURRENCY and PATH_PREFIX;
    an issuer only where PUBLIC_URL, AUTH_URL or TOKEN_ISSUER is set. Processes that differ from
    then on are not ready, and do not start again, until they are set alike.
    """
    cause, parts, wanted = session.cause, session.container, session.load_settings()
    Currency(parts.log, wanted.currency).check()
    before = parts.shared_settings.recorded()
    after = {**before, **SharedSettings(parts.notes, wanted, parts.role).own}
    parts.shared_settings.record(after, cause.at)
    return [{"setting": it, "before": before.get(it), "recorded": after[it]} for it in after]
