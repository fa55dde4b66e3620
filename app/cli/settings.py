"""`settings`: shows the settings, for which it opens nothing, so it works when all else fails."""

from collections.abc import Sequence
from typing import Any

import click

from app.bootstrap.providers import require_known
from app.bootstrap.shared_settings import SharedSettings
from app.cli.operation import Subject
from app.cli.session import Session
from app.settings import Settings, WrongSetting
from domain.accounts.currency import Currency
from domain.accounts.operator_acts import OperatorAct

subject = Subject()


@subject.command("settings", right="keys", when=lambda given: given["adopt"])
@click.option("--adopt", is_flag=True, help="Record what all processes must have alike.")
def show_settings(session: Session, *, adopt: bool) -> Sequence[Any]:
    """Print every setting with its value, default and meaning.

    Settings are environment variables. Each can also stand in a file, which the variable of its
    name with _FILE names. Secrets are masked.

    With --adopt the values of this environment are recorded as those of all processes: the issuer
    and the audience of tokens, the algorithm of keys, CURRENCY and PATH_PREFIX; an issuer only
    where PUBLIC_URL, AUTH_URL or TOKEN_ISSUER is set. Processes that differ from then on are not
    ready, and do not start again, until they are set alike.
    """
    if adopt:
        return _adopt(session)
    try:
        read = Settings.load()
        require_known(read)
    except WrongSetting as error:
        raise click.ClickException(str(error)) from error
    return [*read.describe()]


def _adopt(session: Session) -> list[dict[str, Any]]:
    cause, parts, wanted = session.cause, session.container, session.load_settings()
    Currency(parts.log, wanted.currency).check()
    before = parts.shared_settings.recorded()
    after = {**before, **SharedSettings(parts.notes, wanted, parts.role).own}
    changed = ", ".join(f"{it}={after[it]}" for it in after if after[it] != before.get(it))
    if changed and not parts.gate.is_held():  # The log of a held copy stays as it is.
        parts.log.append(OperatorAct.of("settings.adopted", changed, cause))
    parts.shared_settings.record(after, cause.at)
    return [{"setting": it, "before": before.get(it), "recorded": after[it]} for it in after]
