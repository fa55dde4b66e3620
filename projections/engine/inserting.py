"""Insert or replace many rows at once, in the fastest way that the database has."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Table, Uuid
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

Row = Mapping[str, Any]
_POSTGRESQL: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # of the library
NONE = frozenset[str]()
SUM_MAX = 2**62  # Ten deposits fill 64 bits, and a sum that overflowed would stop all for ever.
MANY_ROWS = 4  # For fewer rows one statement with values takes half the time of a COPY.


def insert_into(table: Table, dialect: Dialect) -> postgresql.Insert | sqlite.Insert:
    """Return an INSERT of this database, to which `on_conflict_do_update` can be added."""
    if dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def insert_many(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows that have the same columns, two at least; for no rows nothing is sent.

    Many rows go to PostgreSQL by binary COPY, which costs client and server half as much as text.
    """
    if len(rows) < MANY_ROWS or connection.dialect.name == "sqlite":
        _insert(connection, table, rows, "")
        return
    columns = (*rows[0],)
    statement = f"COPY {table.name} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
    values = itemgetter(*columns)
    with driver_of(connection) as driver, driver.cursor().copy(statement) as copy:
        copy.set_types(_kinds(table, columns))
        for row in rows:
            copy.write_row(values(row))


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[Row],
    *,
    added: frozenset[str] = NONE,
    fixed: frozenset[str] = NONE,
) -> None:
    """Insert rows that have the same columns and different keys; replace rows whose key exists.

    In a row that exists, columns in `added` are added to and columns in `fixed` stay as they are.
    PostgreSQL takes all rows in one statement, as an array per column.
    """
    if not rows:
        return
    columns, is_sqlite = (*rows[0],), connection.dialect.name == "sqlite"
    conflict = _on_conflict(table, columns, added, fixed, "min" if is_sqlite else "least")
    rows = [{**row, **{n: min(row[n], SUM_MAX) for n in added}} for row in rows] if added else rows
    if len(rows) < MANY_ROWS or is_sqlite:
        _insert(connection, table, rows, conflict)
        return
    statement = _statement(table, columns, _arrays(table, columns), conflict)
    with driver_of(connection) as driver:
        driver.execute(statement, [[row[name] for row in rows] for name in columns], prepare=True)


def insert_new(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows that have the same columns; rows whose key exists are left as they are."""
    _insert(connection, table, rows, "ON CONFLICT DO NOTHING")


def _insert(connection: Connection, table: Table, rows: Sequence[Row], conflict: str) -> None:
    """Insert rows by one prepared statement of the driver: a few on PostgreSQL, any on SQLite."""
    if not rows:
        return
    assert connection.in_transaction()
    columns, count = (*rows[0],), len(rows)
    with driver_of(connection) as driver:
        if connection.dialect.name == "sqlite":
            values = _values_of_sqlite(table, columns)
            statement = _statement(table, columns, _marks(table, columns, 0), conflict)
            driver.executemany(statement, [values(row) for row in rows])
        else:
            values = itemgetter(*columns)
            statement = _statement(table, columns, _marks(table, columns, count), conflict)
            driver.write(statement, [*chain.from_iterable(map(values, rows))])


@contextmanager
def driver_of(connection: Connection) -> Iterator[Any]:
    """Lend the connection of the driver; its errors are raised as SQLAlchemy's."""
    library = connection.dialect.loaded_dbapi
    try:
        yield connection.connection.driver_connection
    except library.Error as error:
        raise DBAPIError.instance(
            "INSERT", None, error, library.Error, hide_parameters=True, dialect=connection.dialect
        ) from error


@lru_cache(maxsize=64)  # One entry a table; each rebuild makes tables of its own.
def _values_of_sqlite(table: Table, columns: tuple[str, ...]) -> Callable[[Row], Sequence[Any]]:
    """Return a function that makes a tuple of a row for SQLite, where ids are text."""
    values = itemgetter(*columns)
    ids = [index for index, name in enumerate(columns) if isinstance(table.c[name].type, Uuid)]
    if not ids:
        return values

    def convert(row: Row) -> Sequence[Any]:
        made = [*values(row)]
        for index in ids:
            if made[index] is not None:
                made[index] = made[index].hex
        return made

    return convert


@lru_cache(maxsize=256)  # One entry for each table and each small number of rows.
def _marks(table: Table, columns: tuple[str, ...], count: int) -> str:
    """Return the parameter marks of `count` rows on PostgreSQL; for 0, of one row on SQLite."""
    if not count:
        return f"VALUES ({', '.join('?' * len(columns))})"
    marks = [
        f"${number}::{kind}" for number, kind in enumerate([*_kinds(table, columns)] * count, 1)
    ]
    rows = (marks[start : start + len(columns)] for start in range(0, len(marks), len(columns)))
    return "VALUES " + ", ".join("({})".format(", ".join(row)) for row in rows)


@lru_cache(maxsize=64)  # One entry a table.
def _arrays(table: Table, columns: tuple[str, ...]) -> str:
    arrays = ", ".join(f"%b::{kind}[]" for kind in _kinds(table, columns))
    return f"SELECT * FROM unnest({arrays})"  # noqa: S608  # Our names.


@lru_cache(maxsize=64)  # One entry a table.
def _kinds(table: Table, columns: tuple[str, ...]) -> Sequence[str]:
    """Return the PostgreSQL types of columns, without their collation."""
    kinds = (table.c[name].type.compile(_POSTGRESQL) for name in columns)
    return [kind.partition(" COLLATE")[0].lower() for kind in kinds]


def _statement(table: Table, columns: tuple[str, ...], source: str, conflict: str) -> str:
    return f"INSERT INTO {table.name} ({', '.join(columns)}) {source} {conflict}"  # Our names.


@lru_cache(maxsize=64)  # One entry a table.
def _on_conflict(
    table: Table, columns: tuple[str, ...], added: frozenset[str], fixed: frozenset[str], least: str
) -> str:
    keys = [column.name for column in table.primary_key]
    mine = {name: f"{table.name}.{name}" for name in added}
    new = {name: f"{it} + {least}(excluded.{name}, {SUM_MAX} - {it})" for name, it in mine.items()}
    others = (name for name in columns if name not in keys and name not in fixed)
    replaced = ", ".join(f"{name} = {new.get(name, f'excluded.{name}')}" for name in others)
    return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {replaced}"
