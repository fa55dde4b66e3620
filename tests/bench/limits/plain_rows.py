"""The limit of projecting: the same rows in the same tables, by batched INSERT alone."""

import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.limits.plain_sqlite import connect
from tests.bench.measure import rate

BATCH_ROWS = 500

Entry = tuple[str, str, str]  # Type, name and statement, as SQLite lists them.


class PlainRows:
    """The tables, indexes and rows of a database as they are now."""

    def __init__(self, path: Path) -> None:
        connection = connect(path, synchronous="NORMAL")
        query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
        found = _without_indexes_of_texts(connection.execute(query).fetchall())
        self._schema = ";".join(sql for _, _, sql in found)
        tables = [name for kind, name, _ in found if kind == "table"]
        self._rows = {name: _rows_of(connection, name) for name in tables}
        connection.close()

    def close(self) -> None:
        """Do nothing: no connection is held."""

    def rate(self, things: int) -> float:
        """Return how many things a second it makes to insert the rows of so many of them."""
        with TemporaryDirectory(prefix="bench-") as directory:
            connection = connect(Path(directory) / "plain.db", synchronous="NORMAL")
            connection.executescript(self._schema)
            try:
                return rate(things, lambda: self._insert(connection))
            finally:
                connection.close()

    def _insert(self, connection: sqlite3.Connection) -> None:
        for name, rows in self._rows.items():
            for start in range(0, len(rows), BATCH_ROWS):
                batch = rows[start : start + BATCH_ROWS]
                marks = ", ".join("?" * len(batch[0]))
                statement = f'INSERT INTO "{name}" VALUES ({marks})'  # noqa: S608  # Our own table.
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(statement, batch)
                connection.execute("COMMIT")


def _without_indexes_of_texts(found: list[Entry]) -> list[Entry]:
    """Leave out virtual tables and those that stand behind them, which SQLite makes itself."""
    virtual = [name for _, name, sql in found if sql.startswith("CREATE VIRTUAL")]
    return [
        each
        for each in found
        if not any(each[1] == name or each[1].startswith(f"{name}_") for name in virtual)
    ]


def _rows_of(connection: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    return connection.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608  # Our own table.
