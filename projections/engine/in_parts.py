"""Change many rows in many small transactions, along an index of their table.

The server ends a statement that takes too long, so a purge in one statement would fail for good
once the table is large enough. A purge that is cut off goes on at the next call.
"""

from itertools import count
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Delete,
    FromClause,
    Select,
    Table,
    Update,
    and_,
    func,
    select,
    true,
    tuple_,
)

from projections.engine.database import Database

# Rows looked at in one transaction: tens of milliseconds, which others may have to wait.
PART_ROWS = 5_000


def change_in_parts(  # noqa: PLR0913  # Which rows, and how to find them.
    database: Database,
    change: Delete | Update,
    wanted: ColumnElement[bool],
    along: Column[Any],
    within: ColumnElement[bool] | None = None,
    parts_max: int | None = None,
) -> int:
    """Change the rows that are `wanted`, one part of the table at a time; return how many.

    `along` must be the first column of an index, or the next one after the columns in `within`.
    Then a part costs the same however large the table is and however few rows are wanted.
    """
    here = true() if within is None else within
    changed, after = 0, None
    for _ in count() if parts_max is None else range(parts_max):
        part = here if after is None else and_(here, along > after)
        # What is erased must not come back after a crash.
        with database.writing(durable=True) as connection:
            _go_by_the_index(connection)
            ahead = select(along).where(part).order_by(along).offset(PART_ROWS - 1).limit(1)
            until = connection.execute(ahead).scalar_one_or_none()
            if until is not None:
                part = and_(part, along <= until)
            # Counted first, so that the statement finds its rows by `part`, along the index.
            locked = _locked(along.table, and_(part, wanted)).subquery()
            connection.execute(select(func.count()).select_from(locked))
            changed += connection.execute(change.where(part, wanted)).rowcount
        if until is None:
            break
        after = until
    return changed


def _go_by_the_index(connection: Connection) -> None:
    """Make PostgreSQL use the index; without statistics it would sort the rest of the table."""
    if connection.dialect.name == "postgresql":
        for way in ("seqscan", "bitmapscan"):
            connection.exec_driver_sql(f"SET LOCAL enable_{way} = off")


def in_order(table: Table, *wanted: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition of a statement that changes many rows at once.

    On PostgreSQL the rows are locked in the order of their keys first; two statements that lock the
    same rows in different orders deadlock. SQLite has one writer at a time.
    """
    keys = [*table.primary_key]
    return (tuple_(*keys) if keys[1:] else keys[0]).in_(_locked(table, *wanted))


def _locked(table: FromClause, *wanted: ColumnElement[bool]) -> Select[Any]:
    keys = [*table.primary_key]
    found = select(*keys).where(*wanted).order_by(*keys)
    return found.with_for_update().correlate(None)
