"""Whether a read model is what the log says: it is rebuilt beside the live one and compared."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from sqlalchemy import Connection, Table, select

from domain.application import Log
from projections.database import Database
from projections.positions import Positions
from projections.read_model import ReadModel
from projections.rebuild import Progress, discard, fill, ignore_progress

DIFFERENCES_MAX = 5  # Per table; the first ones say enough.


def differences(
    log: Log,
    database: Database,
    positions: Positions,
    model: ReadModel,
    progress: Progress = ignore_progress,
) -> list[str]:
    """Return what a live read model and its rebuild do not share, at one position of both."""
    with database.snapshot() as live:
        place = positions.get(live, model.name)
        if place is None:
            return [f"read model {model.name} was never built"]
        if place.failure is not None:
            return [f"read model {model.name} stopped: {place.failure}"]
        fresh, _ = fill(log, database, model, place.position, progress)
        try:
            with database.reading() as rebuilt:
                return list(_compare(live, rebuilt, model, fresh))
        finally:
            discard(database, fresh)


def _compare(
    live: Connection, rebuilt: Connection, model: ReadModel, fresh: ReadModel
) -> Iterator[str]:
    for old, new in zip(model.tables, fresh.tables, strict=True):
        found = 0
        for ours, theirs in zip_longest(_rows(live, old), _rows(rebuilt, new)):
            if ours != theirs:
                key = (ours or theirs)[0]
                yield f"read model {model.name}: table {old.name} differs at key {key}"
                found += 1
                if found == DIFFERENCES_MAX:
                    break


def _rows(connection: Connection, table: Table) -> Iterator[Any]:
    """Stream the rows by primary key; its columns come first, so a row names itself."""
    keys = list(table.primary_key.columns)
    others = [column for column in table.columns if not column.primary_key]
    statement = select(*keys, *others).order_by(*keys)
    return iter(connection.execution_options(yield_per=1_000).execute(statement))
