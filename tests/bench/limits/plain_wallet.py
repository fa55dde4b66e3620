"""The limit of charges: a balance in a row, one UPDATE and one INSERT per commit."""

from pathlib import Path
from uuid import uuid4

from tests.bench.limits.plain_sqlite import connect

SCHEMA = """
CREATE TABLE wallet (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
CREATE TABLE transactions (id TEXT PRIMARY KEY, amount INTEGER NOT NULL, reference TEXT NOT NULL);
INSERT INTO wallet VALUES (1, 1000000000000);
"""


def create(path: Path) -> None:
    """Make the file with its one wallet."""
    connection = connect(path, synchronous="FULL")
    connection.executescript(SCHEMA)
    connection.close()


def charge_often(path: Path, count: int) -> None:
    """Take money from the wallet, each time in a transaction of its own."""
    connection = connect(path, synchronous="FULL")
    for _ in range(count):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE wallet SET balance = balance - 5000 WHERE balance >= 5000")
        row = (uuid4().hex, 5000, uuid4().hex)
        connection.execute("INSERT INTO transactions VALUES (?, ?, ?)", row)
        connection.execute("COMMIT")
    connection.close()
