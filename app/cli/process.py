"""`web`, `worker`, `dispatcher`, `projector` and `clock`: the processes of the Procfile."""

from collections.abc import Callable

import click

from app.bootstrap.container import Container
from app.cli.installation import installation
from app.settings import WrongSetting
from app.watch.logging import configure_logging

ALONE = "BROKER_URL: memory:// reaches no other process; name a RabbitMQ, or run `serve`"


def _process(name: str, text: str, run: Callable[[Container], None]) -> click.Command:
    def callback() -> None:
        with installation(migrated=False) as container:
            settings = container.settings
            if settings.has_own_broker and name != "projector":
                raise WrongSetting(ALONE)
            container.role = name
            configure_logging(settings.log_format)
            run(container)

    return click.Command(name, callback=callback, help=text)


def _web(container: Container) -> None:
    from app.processes import web  # noqa: PLC0415  # Only this process loads Flask.

    web.run(container)


def _background(role: str) -> Callable[[Container], None]:
    def run(container: Container) -> None:
        from app.processes import background  # noqa: PLC0415  # As above.

        background.run(container, role)  # type: ignore[arg-type]  # From the table below.

    return run


WAITS = """It waits for the database, its tables and the broker, in whatever order they come.
SIGTERM ends it within 30 s; a kill loses nothing."""

commands = {
    "web": _process("web", f"Serve HTTP in WEB_WORKERS processes.\n\n{WAITS}", _web),
    "worker": _process(
        "worker",
        f"Run lookups, provisioning and billing from the queues.\n\nRun any number.\n\n{WAITS}",
        _background("worker"),
    ),
    **{
        name: _process(
            name,
            f"{text}\n\nOf several one is active, the others stand by.\n\n{WAITS}",
            _background(name),
        )
        for name, text in {
            "dispatcher": "Follow the log and fill the queues.",
            "projector": "Follow the log and keep the read models up.",
            "clock": "Sweep idle work, ask for monthly fees, purge what has lapsed.",
        }.items()
    },
}
