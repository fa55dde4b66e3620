"""Rebuild: new tables are filled beside the serving ones, then swapped in one transaction."""

import re
import time
from collections.abc import Callable
from secrets import token_hex

from sqlalchemy import Connection, inspect, text

from domain.application import Log, Recorded
from projections.database import Database
from projections.positions import Positions
from projections.read_model import Batch, ReadModel

BATCH_EVENTS_MAX = 2_000  # Larger than live: nobody waits for a single row of a rebuild.

ORPHAN_S = 86_400  # No rebuild lasts that long: such tables were left by one that was killed.

_GENERATION = re.compile(r".+__(?P<made>[0-9a-f]{8})[0-9a-f]{8}\Z")

Progress = Callable[[int, int], None]  # Position reached, position aimed at.


def ignore_progress(_position: int, _goal: int) -> None:
    """Say nothing."""


def fill(
    log: Log, database: Database, model: ReadModel, until: int, progress: Progress = ignore_progress
) -> tuple[ReadModel, Recorded | None]:
    """Make a new generation of a model's tables and fill it up to a position.

    Returns it with the last event that went in. Drop it with `discard` or swap it in.
    """
    fresh = model.of(f"{int(time.time()):08x}{token_hex(4)}")
    with database.writing() as connection:
        fresh.metadata.create_all(connection)
    last: Recorded | None = None
    try:
        while last is None or last.position < until:
            batch = _read(log, last, until)
            if not batch:
                break
            with database.writing() as connection:
                fresh.follow(connection, Batch(batch))
            last = batch[-1]
            progress(last.position, until)
    except BaseException:
        discard(database, fresh)
        raise
    return fresh, last


def discard(database: Database, model: ReadModel) -> None:
    """Drop the tables of a generation."""
    with database.writing() as connection:
        model.metadata.drop_all(connection)


def drop_orphans(database: Database) -> None:
    """Drop what rebuilds that were killed have left behind."""
    oldest = time.time() - ORPHAN_S
    with database.writing() as connection:
        for name in inspect(connection).get_table_names():
            match = _GENERATION.match(name)
            if match and int(match["made"], 16) < oldest:
                connection.execute(text(f'DROP TABLE IF EXISTS "{name}"'))


def rebuild(
    log: Log,
    database: Database,
    positions: Positions,
    model: ReadModel,
    progress: Progress = ignore_progress,
) -> int:
    """Replace a read model by what the log says, while it serves; return its position."""
    fresh, last = fill(log, database, model, log.head(), progress)
    try:
        return _take_over(log, database, positions, model, fresh, last)
    except BaseException:
        discard(database, fresh)
        raise


def _take_over(  # noqa: PLR0913  # The two halves of one rebuild.
    log: Log,
    database: Database,
    positions: Positions,
    model: ReadModel,
    fresh: ReadModel,
    last: Recorded | None,
) -> int:
    with database.writing() as connection:
        # Position first, then tables, as the projector does: otherwise the two could deadlock.
        live = positions.hold(connection, model.name)
        goal = live.position if live is not None and live.failure is None else 0
        while last is None or last.position < goal:  # What the live one has seen meanwhile.
            batch = _read(log, last, goal)
            if not batch:
                break
            fresh.follow(connection, Batch(batch))
            last = batch[-1]
        _swap(connection, fresh)
        positions.begin(connection, model.name, model.version, last)
    return last.position if last is not None else 0


def _swap(connection: Connection, fresh: ReadModel) -> None:
    for new in fresh.names(connection):
        old = new.removesuffix(fresh.named(""))
        connection.execute(text(f'DROP TABLE IF EXISTS "{old}"'))
        connection.execute(text(f'ALTER TABLE "{new}" RENAME TO "{old}"'))


def _read(log: Log, last: Recorded | None, until: int) -> list[Recorded]:
    batch = log.read(last.position if last is not None else 0, BATCH_EVENTS_MAX)
    return [recorded for recorded in batch if recorded.position <= until]
