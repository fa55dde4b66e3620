"""Verify a read model: rebuild it beside the live one and compare the two."""

from collections.abc import Iterator
from heapq import merge
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Connection, CursorResult, String, Table, select

from projections.engine.positions import Source, belongs
from projections.engine.read_model import ReadModel
from projections.engine.rebuild import Filling, Progress, ignore_progress

DIFFERENCES_MAX = 5  # Per table; the first differences say enough.


def differences(
    source: Source, model: ReadModel, progress: Progress = ignore_progress
) -> list[str]:
    """Return how a live read model differs from its rebuild, both at the same position."""
    log, database = source.log, source.database
    with database.snapshot() as live:
        position = source.positions.get(live, model.name)
        if position is None:
            return [f"read model {model.name} was never built"]
        if position.failure is not None:
            return [f"read model {model.name} stopped: {position.failure}"]
        if not belongs(log, position.ref):
            return [f"read model {model.name} stands on an event that the log does not have"]
        filling = Filling(database, [model])
        filling.run(log, position.position, progress)
        for failure in filling.failures:
            raise failure
        try:
            with database.snapshot() as rebuilt:
                return list(_compare(live, rebuilt, model, filling.fresh[model.name]))
        finally:
            filling.discard()


def _compare(
    live: Connection, rebuilt: Connection, model: ReadModel, fresh: ReadModel
) -> Iterator[str]:
    for old, new in zip(model.tables, fresh.tables, strict=True):
        keys = len(list(old.primary_key.columns))
        # Closed at the end: after the first differences a cursor is in the middle of a table.
        with _rows(live, old) as ours, _rows(rebuilt, new) as theirs:
            strange = _differing_keys(iter(ours), iter(theirs), keys)
            for key in islice(strange, DIFFERENCES_MAX):
                shown = ", ".join(str(part) for part in key)
                yield f"read model {model.name}: table {old.name} differs at key {shown}"


def _differing_keys(ours: Iterator[Any], theirs: Iterator[Any], keys: int) -> Iterator[Any]:
    """Walk two tables in the order of their keys; yield each key whose rows differ."""

    def key_of(row: Any) -> Any:
        return tuple(row[:keys])

    for key, found in groupby(merge(ours, theirs, key=key_of), key_of):
        mine, *others = found  # Of each table one, or nothing.
        if others != [mine]:
            yield key


def _rows(connection: Connection, table: Table) -> CursorResult[Any]:
    """Stream the rows by primary key, with the key columns first."""
    keys = list(table.primary_key.columns)
    others = [column for column in table.columns if not column.primary_key]
    is_postgresql = connection.dialect.name == "postgresql"
    # Sort texts as Python does, which compares the keys; the database may have another order.
    order = [
        key.collate("C") if is_postgresql and isinstance(key.type, String) else key for key in keys
    ]
    statement = select(*keys, *others).order_by(*order)
    return connection.execution_options(yield_per=1_000).execute(statement)
