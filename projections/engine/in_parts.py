"""One change of many rows as many small transactions, along an index of their table.

A statement grows with what it touches, and the server ends one that takes too long: a table that
has outgrown one statement could never be purged again. What is cut off halfway goes on next time.
"""

from itertools import count
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Delete,
    FromClause,
    Update,
    and_,
    func,
    select,
    true,
)

from projections.engine.database import Database

PART_ROWS = 5_000  # Looked at in one transaction: tens of milliseconds, for which others may wait.


def change_in_parts(  # noqa: PLR0913  # Which rows, and how to get to them.
    database: Database,
    change: Delete | Update,
    wanted: ColumnElement[bool],
    along: Column[Any],
    within: ColumnElement[bool] | None = None,
    parts_max: int | None = None,
) -> int:
    """Change the rows that are wanted, a part of the table at a time; return how many.

    `along` begins an index, or follows in one after what `within` names. So a part costs the same
    however many rows there are, and however few of them are wanted.
    """
    here = true() if within is None else within
    changed, after = 0, None
    for _ in count() if parts_max is None else range(parts_max):
        part = here if after is None else and_(here, along > after)
        with database.writing(durable=True) as connection:  # What is erased must not come back.
            _go_by_the_index(connection)
            ahead = select(along).where(part).order_by(along).offset(PART_ROWS - 1).limit(1)
            until = connection.execute(ahead).scalar_one_or_none()
            if until is not None:
                part = and_(part, along <= until)
            _lock_in_order(connection, along.table, and_(part, wanted))
            changed += connection.execute(change.where(part, wanted)).rowcount
        if until is None:
            break
        after = until
    return changed


def _go_by_the_index(connection: Connection) -> None:
    """Keep PostgreSQL from sorting the whole rest of a table, as it does where it knows little."""
    if connection.dialect.name == "postgresql":
        for way in ("seqscan", "bitmapscan"):
            connection.exec_driver_sql(f"SET LOCAL enable_{way} = off")


def _lock_in_order(connection: Connection, table: FromClause, wanted: ColumnElement[bool]) -> None:
    """Take rows in the order in which writers take them: else one of two ends in a deadlock."""
    if connection.dialect.name != "postgresql":
        return  # A transaction that writes is alone.
    keys = [*table.primary_key]
    locked = select(*keys).where(wanted).order_by(*keys).with_for_update().subquery()
    connection.execute(select(func.count()).select_from(locked))
