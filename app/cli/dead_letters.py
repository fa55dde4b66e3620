"""`dead-letters`: messages that were given up, and how to send them again."""

from collections.abc import Sequence
from typing import Any

import click

from app.bootstrap.container import Container
from app.cli.installation import installation
from app.cli.output import as_json_option, show, show_list
from workers.dead_letters import DeadLetter, DeadLetters
from workers.routes import QUEUES

queue_option = click.option(
    "--queue", metavar="Q", type=click.Choice(QUEUES), help="This queue only."
)


@click.group(name="dead-letters")
def command() -> None:
    """Messages that were given up, and their way back.

    A message is given up after its second failure, or when this release has no actor for it. Its
    work is not lost: the log knows what is unfinished, and the clock asks for it again.
    """


@command.command(name="list")
@queue_option
@as_json_option
def list_(*, queue: str | None, as_json: bool) -> None:
    """Show what each queue has given up within the last week, oldest first."""
    with installation(migrated=False) as container:
        rows = [_row(*each) for each in _chosen(container, queue)]
    if as_json:
        show_list(rows, as_json=True)
        return
    for row in rows:
        click.echo(f"{row['queue']}: {row['count']}")
    show_list(
        [{"queue": row["queue"]} | each for row in rows for each in row["messages"]], as_json=False
    )


@command.command()
@queue_option
@click.option(
    "--max",
    "messages_max",
    metavar="N",
    type=click.IntRange(min=1),
    help="At most so many of each.",
)
@as_json_option
def replay(*, queue: str | None, messages_max: int | None, as_json: bool) -> None:
    """Put messages back into their queues, to be tried twice more.

    Each is put back before it is removed. If the command ends in between, it is there twice, which
    is harmless. Messages without an actor in this release stay.
    """
    with installation(migrated=False) as container:
        chosen = _chosen(container, queue)
        done = [letters.replay(name, messages_max) for name, letters in chosen]
    facts = {"replayed": sum(moved for moved, _ in done), "left": sum(left for _, left in done)}
    show(facts, as_json=as_json)


@command.command()
@click.option("--queue", metavar="Q", type=click.Choice(QUEUES), required=True, help="This queue.")
@click.option("--yes", is_flag=True, help="Drop them; without it nothing is done.")
@as_json_option
def purge(*, queue: str, yes: bool, as_json: bool) -> None:
    """Delete what a queue has given up, for good."""
    if not yes:
        message = f"this drops every dead letter of {queue} for good; say so with --yes"
        raise click.UsageError(message)
    with installation(migrated=False) as container:
        purged = sum(letters.purge(name) for name, letters in _chosen(container, queue))
    show({"purged": purged}, as_json=as_json)


def _chosen(container: Container, queue: str | None) -> Sequence[tuple[str, DeadLetters]]:
    """Pair queues with their dead letters; the broker within a process keeps none."""
    letters = container.broker.given_up
    if letters is None:
        return []
    return [(name, letters) for name in QUEUES if queue in {None, name}]


def _row(queue: str, letters: DeadLetters) -> dict[str, Any]:
    return {
        "queue": queue,
        "count": letters.count(queue),
        "messages": [_facts(each) for each in letters.read(queue)],
    }


def _facts(letter: DeadLetter) -> dict[str, Any]:
    return {
        "actor": letter.actor,
        "ids": letter.ids,
        "died_at": letter.died_at,
        "error": letter.error,
    }
