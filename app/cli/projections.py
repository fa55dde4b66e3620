"""`projections`: the read models that are built from the log."""

from collections.abc import Sequence
from typing import Any

import click

from app.bootstrap.container import Container
from app.cli.installation import installation, note_act
from app.cli.output import as_json_option, show_list, watched
from app.cli.rights import authorize
from projections.audit.tree_keeper import NAME as TREE
from projections.engine.positions import Lag, lags
from projections.engine.read_model import ReadModel
from projections.engine.rebuild import rebuild_all


@click.group(name="projections")
def command() -> None:
    """The read models that are built from the log."""


@command.command()
@as_json_option
def status(*, as_json: bool) -> None:
    """Show how far each follower of the log has come, and why one has stopped."""
    with installation() as container:
        rows = [_facts(lag) for lag in lags(container.log, container.views, container.positions)]
    show_list(rows, as_json=as_json)


@command.command(name="rebuild")
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--all", "everything", is_flag=True, help="Every read model; the log is read once.")
@as_json_option
def build(*, name: str | None, everything: bool, as_json: bool) -> None:
    """Rebuild a read model from the log, while the service runs.

    `audit_tree` forgets what the auditor has kept of each event and takes the log as it is now;
    with operators it needs the right `audit`, and `operator acts` tells who did it.
    """
    if (name is not None) == everything:
        message = "give either the NAME of a read model or --all"
        raise click.UsageError(message)
    with installation() as container:
        if name == TREE:
            actor = authorize(container, "audit")  # The tree is evidence against a changed log.
            note_act(container, "tree.rebuilt", f"position {container.log.head()}", actor)
            with watched("Hashing") as progress:
                reached = {TREE: container.tree_keeper.restart(progress)}
        else:
            reached = _rebuild(container, _chosen(container, name))
        rows = [{"name": name, "position": position} for name, position in reached.items()]
    show_list(rows, as_json=as_json)


def _facts(lag: Lag) -> dict[str, Any]:
    """`behind` counts positions, of which some may be unused."""
    return {
        "name": lag.name,
        "position": lag.position,
        "behind": lag.events,
        "caught_up_at": lag.caught_up_at,
        "failure": lag.failure,
    }


def _chosen(container: Container, name: str | None) -> list[ReadModel]:
    models = {model.name: model for model in container.models}
    if name is None:
        return [*models.values()]
    if name not in models:
        message = f"{name!r} is none of: {', '.join([*models, TREE])}"
        raise click.BadParameter(message, param_hint="'NAME'")
    return [models[name]]


def _rebuild(container: Container, models: Sequence[ReadModel]) -> dict[str, int]:
    what = models[0].name if len(models) == 1 else "all read models"
    with watched(f"Building {what}") as progress:
        return rebuild_all(container.log, container.views, container.positions, models, progress)
