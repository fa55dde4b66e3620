"""The limit of lists: some rows of a table that follow each other by primary key."""

from pathlib import Path
from uuid import uuid4

from tests.bench.limits.plain_sqlite import connect


class PlainPage:
    """Reads rows from a place by chance, in one statement."""

    def __init__(self, path: Path, table: str, rows: int) -> None:
        self._connection = connect(path, synchronous="NORMAL")
        self._rows = rows
        self._statement = f'SELECT * FROM "{table}" WHERE id >= ? ORDER BY id LIMIT ?'  # noqa: S608  # Our own table.

    def read(self) -> None:
        self._connection.execute(self._statement, (uuid4().hex, self._rows)).fetchall()

    def close(self) -> None:
        self._connection.close()
