"""The rows of the read models by batched INSERT alone: the limit of projecting."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier, Placeholder

from tests.bench.measure import rate

BATCH_ROWS = 500
PLAIN = "plain"

Rows = Sequence[tuple[Any, ...]]


class PlainRows:
    """The tables, indexes and rows of the read models as they are now, on PostgreSQL."""

    def __init__(self, url: str, tables: Sequence[str]) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("SET synchronous_commit = off")  # As the projector has it.
        self._rows = {name: self._read(name) for name in tables}

    def rate(self, things: int) -> float:
        """Return how many things a second it makes to insert the rows of so many of them."""
        self._connection.execute(f"DROP SCHEMA IF EXISTS {PLAIN} CASCADE; CREATE SCHEMA {PLAIN}")
        for name in self._rows:
            like = SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)")
            self._connection.execute(like.format(Identifier(PLAIN, name), Identifier(name)))
        return rate(things, self._insert)

    def close(self) -> None:
        self._connection.close()

    def _read(self, table: str) -> Rows:
        query = SQL("SELECT * FROM {}").format(Identifier(table))
        return self._connection.execute(query).fetchall()

    def _insert(self) -> None:
        for name, batch in _batches(self._rows):
            marks = SQL(", ").join(Placeholder() * len(batch[0]))
            insert = SQL("INSERT INTO {} VALUES ({})").format(Identifier(PLAIN, name), marks)
            with self._connection.transaction(), self._connection.cursor() as cursor:
                cursor.executemany(insert, batch)


class PlainFileRows:
    """The same on SQLite, inserted into a file of its own."""

    def __init__(self, views: Path) -> None:
        with closing(_opened(views)) as connection:
            query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
            found = connection.execute(query).fetchall()
            tables = [name for kind, name, _ in found if kind == "table"]
            self._rows = {
                name: connection.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608  # Our own table.
                for name in tables
            }
        self._schema = ";".join(sql for kind, _, sql in found if kind in {"table", "index"})

    def rate(self, things: int) -> float:
        """Return how many things a second it makes to insert the rows of so many of them."""
        with (
            TemporaryDirectory(prefix="bench-") as directory,
            closing(_opened(Path(directory) / "plain.db")) as connection,
        ):
            connection.executescript(self._schema)
            return rate(things, lambda: self._insert(connection))

    def close(self) -> None:
        """Do nothing: no connection is held."""

    def _insert(self, connection: sqlite3.Connection) -> None:
        for name, batch in _batches(self._rows):
            marks = ", ".join("?" * len(batch[0]))
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', batch)  # noqa: S608  # Our own table.
            connection.execute("COMMIT")


def _opened(path: Path) -> sqlite3.Connection:
    """Open a file as the read models have theirs."""
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _batches(rows: Mapping[str, Rows]) -> Iterator[tuple[str, Rows]]:
    for name, each in rows.items():
        for start in range(0, len(each), BATCH_ROWS):
            yield name, each[start : start + BATCH_ROWS]
