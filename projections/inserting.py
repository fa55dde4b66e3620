"""Many rows at once, new ones or replacements, by the shortest way that the database has."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Executable, Table, Uuid
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

Row = Mapping[str, Any]
_POSTGRESQL: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # of the library
NONE = frozenset[str]()
MANY_ROWS = 4  # For fewer rows a statement of the library is as quick.


def insert_many(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows of the same columns; no rows, no round trip.

    PostgreSQL takes them by COPY, SQLite as tuples of its own driver.
    """
    if not rows:
        return
    columns = (*rows[0],)
    if connection.dialect.name == "sqlite":
        statement, convert = _statement(table, columns)
        with driver_of(connection) as driver:
            driver.executemany(statement, [convert(row) for row in rows])
    elif len(rows) < MANY_ROWS:
        connection.execute(table.insert(), [*rows])
    else:
        statement, values = f"COPY {table.name} ({', '.join(columns)}) FROM STDIN", _values(columns)
        with driver_of(connection) as driver, driver.cursor().copy(statement) as copy:
            for row in rows:
                copy.write_row(values(row))


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[Row],
    *,
    added: frozenset[str] = NONE,
    kept: frozenset[str] = NONE,
) -> None:
    """Insert rows of the same columns and of different keys; whoever has the key is replaced.

    But what is `added` goes to what he has, and what is `kept` stays. PostgreSQL takes the rows as
    an array per column, in one statement.
    """
    if not rows:
        return
    columns = (*rows[0],)
    if connection.dialect.name == "sqlite" or len(rows) < MANY_ROWS:
        connection.execute(_upsert(connection.dialect.name, table, columns, added, kept), [*rows])
    else:
        arrays = [[row[name] for row in rows] for name in columns]
        with driver_of(connection) as driver:
            statement = _upsert_of_arrays(table, columns, added, kept)
            driver.execute(statement, arrays, prepare=True)


@contextmanager
def driver_of(connection: Connection) -> Iterator[Any]:
    """Lend the driver's connection inside the transaction; its errors become the library's."""
    library = connection.dialect.loaded_dbapi
    assert connection.in_transaction()
    try:
        yield connection.connection.driver_connection
    except library.Error as error:
        done = "INSERT"
        raise DBAPIError.instance(
            done, None, error, library.Error, hide_parameters=True, dialect=connection.dialect
        ) from error


def _values(columns: tuple[str, ...]) -> Callable[[Row], tuple[Any, ...]]:
    if len(columns) == 1:
        return lambda row: (row[columns[0]],)
    return itemgetter(*columns)


@lru_cache(maxsize=64)  # Of tables; a rebuild has tables of its own.
def _statement(
    table: Table, columns: tuple[str, ...]
) -> tuple[str, Callable[[Row], Sequence[Any]]]:
    """Return the statement for SQLite, and what makes a tuple of a row: ids are text there."""
    places = ", ".join("?" * len(columns))
    statement = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608  # Our names.
    values = _values(columns)
    ids = [place for place, name in enumerate(columns) if isinstance(table.c[name].type, Uuid)]
    if not ids:
        return statement, values

    def convert(row: Row) -> Sequence[Any]:
        made = [*values(row)]
        for place in ids:
            if made[place] is not None:
                made[place] = made[place].hex
        return made

    return statement, convert


@lru_cache(maxsize=64)  # As above.
def _upsert(
    dialect_name: str,
    table: Table,
    columns: tuple[str, ...],
    added: frozenset[str],
    kept: frozenset[str],
) -> Executable:
    dialect = postgresql if dialect_name == "postgresql" else sqlite
    statement = dialect.insert(table)
    keys, others = _parts(table, columns)
    replaced = {name: statement.excluded[name] for name in others if name not in kept}
    replaced |= {name: table.c[name] + statement.excluded[name] for name in added}
    made: Executable = statement.on_conflict_do_update(index_elements=keys, set_=replaced)
    return made


@lru_cache(maxsize=64)  # As above.
def _upsert_of_arrays(
    table: Table, columns: tuple[str, ...], added: frozenset[str], kept: frozenset[str]
) -> str:
    keys, others = _parts(table, columns)
    kinds = (table.c[name].type.compile(_POSTGRESQL) for name in columns)
    arrays = ", ".join(f"%b::{kind}[]" for kind in kinds)
    more = {name: f"{table.name}.{name} + " for name in added}
    replaced = ", ".join(
        f"{name} = {more.get(name, '')}excluded.{name}" for name in others if name not in kept
    )
    return (
        f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT * FROM unnest({arrays}) "  # noqa: S608  # Our names.
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {replaced}"
    )


def _parts(table: Table, columns: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the columns that name a row, and the others."""
    keys = [column.name for column in table.primary_key]
    return keys, [name for name in columns if name not in keys]
