"""PostgreSQL by the driver alone: the limits of charges and of projecting."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.sql import SQL, Identifier, Placeholder

from tests.bench.measure import rate

BATCH_ROWS = 500
PLAIN = "plain"
WALLET = """
CREATE TABLE plain_wallet (id integer PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE plain_entries (id uuid PRIMARY KEY, amount bigint NOT NULL, reference uuid NOT NULL);
INSERT INTO plain_wallet VALUES (1, 1000000000000);
"""
CHARGE = """
WITH paid AS (
    UPDATE plain_wallet SET balance = balance - 5000 WHERE id = 1 AND balance >= 5000 RETURNING 1
)
INSERT INTO plain_entries SELECT %s, 5000, %s FROM paid
"""


def create_wallet(url: str) -> None:
    """Make the tables with their one wallet."""
    with psycopg.connect(url) as connection:
        connection.execute(WALLET)


def charge_often(url: str, count: int) -> None:
    """Take money from the wallet: one statement, one commit, each time."""
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(count):
            connection.execute(CHARGE, (uuid4(), uuid4()))


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
