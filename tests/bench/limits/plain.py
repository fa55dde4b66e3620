"""The limits beside an installation, by the driver of whatever database it is on."""

from pathlib import Path
from typing import Protocol

from app.bootstrap.container import Container
from tests.bench.limits import plain_postgres, plain_rows, plain_wallet


class Rows(Protocol):
    """The rows of the read models, to be inserted once more."""

    def rate(self, things: int) -> float:
        """Return how many things a second it makes to insert the rows of so many of them."""
        ...

    def close(self) -> None:
        """Close the connections to the database."""
        ...


class Wallet:
    """A balance in a row."""

    def __init__(self, container: Container) -> None:
        self._url = container.settings.database_url
        self._file = _beside(container, "plain")
        if self._file is None:
            plain_postgres.create_wallet(self._url)
        else:
            plain_wallet.create(self._file)

    def charge_often(self, count: int) -> None:
        """Take money from it, each time in a transaction of its own."""
        if self._file is None:
            plain_postgres.charge_often(self._url, count)
        else:
            plain_wallet.charge_often(self._file, count)


def rows_of(container: Container) -> Rows:
    """Return the rows of all read models as they are now."""
    file = _beside(container, "views")
    if file is not None:
        return plain_rows.PlainRows(file)
    tables = [table.name for model in container.models for table in model.tables]
    return plain_postgres.PlainRows(container.settings.database_url, tables)


def _beside(container: Container, purpose: str) -> Path | None:
    """Return a file beside the log, None on PostgreSQL."""
    beside = getattr(container.persistence, "beside_the_log", None)
    return None if beside is None else beside(purpose)
