"""`migrate`, the processes of the Procfile, and the settings of both."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from app.bootstrap.providers import require_known
from app.bootstrap.shared_settings import SharedSettings
from app.cli.operation import Operation, Subject
from app.cli.output import show, warn
from app.cli.root import COMMANDS
from app.cli.session import Session
from app.processes.doctor import announce, split_database
from app.processes.migrate import migrate
from app.processes.readiness import wait_until_reached
from app.processes.stopping import stop_on_signals
from app.settings import Settings, WrongSetting
from app.watch import tracing
from app.watch.logging import configure_logging
from domain.accounts.currency import Currency

# Honcho sets it for each process: the name in the Procfile and the number of the copy.
SUPERVISED = "HONCHO_PROCESS_NAME"
ALONE = "BROKER_URL: memory:// reaches no other process; name a RabbitMQ, or run `serve`"
WAITS = """It waits for the database, its tables and the broker, in whatever order they come.
SIGTERM ends it within 30 s; a kill loses nothing."""
STAND_BY = "Of several one is active, the others stand by."

subject = Subject()


@subject.command("migrate", right=None, on="anything")
@click.option("--process", envvar=SUPERVISED, default="", hidden=True)
def migrate_tables(session: Session, process: str) -> Mapping[str, Any] | None:
    """Create or upgrade every table.

    Safe to run twice, on two machines at once, and while the service runs. Read models that are
    new, changed or of another log are built from the log; `built` names them.

    As `release` under honcho it waits for the database and, once it is done, stays until SIGTERM,
    because honcho ends everything as soon as one process ends.
    """
    stop = stop_on_signals(cut_off_after_s=None) if process.startswith("release.") else None
    container = session.container
    container.role = "migrate"
    if (split := split_database(container.settings)) is not None:
        warn(split)
    if stop is not None:
        configure_logging(container.settings.log_format)
        announce(container)
        if not wait_until_reached(container, stop):
            return None
    container.gate.require()
    built = {"built": migrate(container, session.watch("Building read models"), warn)}
    if stop is None:
        return built
    session.close()
    show(built, as_json=session.as_json)
    click.echo("The tables are up to date. Staying until SIGTERM.", err=session.as_json)
    stop.wait()
    return None


def _add(name: str, *more: str) -> None:
    """Add a process; it prints nothing."""

    def callback(session: Session) -> None:
        container = session.container
        if container.settings.has_own_broker and name != "projector":
            raise WrongSetting(ALONE)
        container.role = name
        tracing.start(container.settings, name)
        if name == "web":
            from app.processes import serve  # noqa: PLC0415  # Only this process loads Flask.

            serve.serve_alone(container)
        else:
            from app.processes import background  # noqa: PLC0415  # As above.

            configure_logging(container.settings.log_format)
            background.run(container, name)  # type: ignore[arg-type]  # From the calls below.

    text = "\n\n".join((COMMANDS[name], *more, WAITS))
    process = Operation(name, callback=callback, help=text, right=None, on="anything", prints=False)
    subject.add_command(process)


_add("web", "Of several on one PORT each has SHARE_PORT=true and its own METRICS_PORT.")
_add("worker", "Run any number.")
_add("dispatcher", STAND_BY)
_add("projector", STAND_BY)
_add("clock", STAND_BY)


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
    parts.shared_settings.record(after, cause.at)
    return [{"setting": it, "before": before.get(it), "recorded": after[it]} for it in after]
