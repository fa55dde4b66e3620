"""The rows of the read models by batched INSERT alone: the limit of projecting."""

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier, Placeholder

from tests.bench.measure import rate

BATCH_ROWS = 500
PLAIN = "plain"


class PlainRows:
    """The tables, indexes and rows of the read models as they are now."""

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

    def _read(self, table: str) -> list[tuple[Any, ...]]:
        query = SQL("SELECT * FROM {}").format(Identifier(table))
        return self._connection.execute(query).fetchall()

    def _insert(self) -> None:
        for name, rows in self._rows.items():
            for start in range(0, len(rows), BATCH_ROWS):
                batch = rows[start : start + BATCH_ROWS]
                marks = SQL(", ").join(Placeholder() * len(batch[0]))
                insert = SQL("INSERT INTO {} VALUES ({})").format(Identifier(PLAIN, name), marks)
                with self._connection.transaction(), self._connection.cursor() as cursor:
                    cursor.executemany(insert, batch)
