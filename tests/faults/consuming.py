"""One consumer of the log, or a command that reads it, in a process that dies at a chosen call.

`python -m tests.faults.consuming projector` follows the log to its end, and so do `dispatcher`,
`webhooks` and `audit_tree`; `night` makes a checkpoint and audits the log. Anything else is a
command of `python -m app`. Each call to a database and each message that is published is a passage
of the failpoint `call` of the role, which is the first argument.
"""

import os
import sqlite3
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from app.adapters.postgres.connection import BoundedConnection
from app.bootstrap.container import Container
from app.settings import Settings
from projections.engine.consumer import Consumer
from tests.faults.failpoints import ARMED, Failpoint, Failpoints
from workers.routes import Message
from workers.schedule import AGAIN

BATCH_MAX = 10  # So that there are several steps between two kills.
PUBLISHED = "published"  # The file of what was published, beside the armed places.


def watch_calls(reach: Callable[..., object]) -> None:
    """Reach the place before each statement of either database."""
    wait, connect = BoundedConnection._wait, sqlite3.connect  # noqa: SLF001  # All go through it.

    def waiting(*args: Any, **options: Any) -> Any:
        reach()
        return wait(*args, **options)

    def connecting(*args: Any, **options: Any) -> sqlite3.Connection:
        made = connect(*args, **options)
        made.set_trace_callback(reach)
        return made

    BoundedConnection._wait = waiting  # type: ignore[method-assign]  # noqa: SLF001  # As above.
    sqlite3.connect = connecting  # type: ignore[assignment]  # In this process alone.


def watch_messages(parts: Container, reach: Callable[..., object], file: Path) -> None:
    """Reach the place before each message; leave a line of each that the broker has confirmed."""
    publish = parts.publisher.publish

    def publishing(message: Message) -> None:
        reach()
        publish(message)
        with file.open("a") as lines:
            lines.write(f"{message.actor} {message.arguments}\n")

    parts.publisher.publish = publishing  # type: ignore[method-assign]  # Of this one.


def follow(consumer: Consumer) -> None:
    """Take steps to the end of the log, as its thread does."""
    consumer.batch_max = BATCH_MAX  # type: ignore[misc]  # Of this one.
    while consumer.step():
        pass


def night(parts: Container) -> None:
    """Do what the clock does at night, as of a day that had no night yet."""
    parts.checkpoints.make()
    last = parts.notes.newest("audit")
    day = (parts.clock() if last is None else last.at) + timedelta(days=1)
    audit = replace(parts.nightly_audit, clock=lambda: day.replace(hour=12))
    while audit.run() is AGAIN:
        pass


WORKS: Mapping[str, Callable[[Container], None]] = {
    "projector": lambda parts: follow(parts.projector),
    "dispatcher": lambda parts: follow(parts.dispatcher),
    "webhooks": lambda parts: follow(parts.webhook_planner),
    "audit_tree": lambda parts: follow(parts.tree_keeper),
    "night": night,
}

if __name__ == "__main__":
    role, directory = sys.argv[1], Path(os.environ["FAULTS_DIRECTORY"])
    failpoints, place = Failpoints(directory / ARMED), Failpoint(role, "call", "before")
    watch_calls(lambda *_: failpoints.reach(place))
    if role in WORKS:
        container = Container(Settings.from_env(os.environ))
        watch_messages(container, lambda: failpoints.reach(place), directory / PUBLISHED)
        WORKS[role](container)
        container.close()
    else:
        from app.cli.root import main

        sys.exit(main())
