"""New installations, made as copies of a template, so that no migration is needed."""

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from app.bootstrap.container import Container
from app.processes.migrate import migrate
from app.settings import Settings
from tests.servers.databases import Databases

TEMPLATE = "migrated"


class Seed(Protocol):
    """A migrated installation that others are copies of, on one of the engines."""

    def copy(self, directory: Path) -> str:
        """Return the DATABASE_URL of a copy; one that consists of files lies in the directory."""
        ...

    def drop(self, url: str) -> None:
        """Remove a copy that has been closed, where removing the directory does not."""
        ...


class SqliteSeed:
    """The files of an installation."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        make_tables(url_in(directory))

    def copy(self, directory: Path) -> str:
        for file in self._directory.glob("service*.db*"):
            if not file.name.endswith("-shm"):  # SQLite makes it anew from what was copied.
                shutil.copy(file, directory)
        return url_in(directory)

    def drop(self, url: str) -> None:
        """The directory is the test's own."""


@cache
def sqlite_seed() -> SqliteSeed:
    """Return the one of this process; its files go when the process ends."""
    home = TemporaryDirectory()
    atexit.register(home.cleanup)
    return SqliteSeed(Path(home.name))


class PostgresSeed:
    """A template database, made once per session."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._template = databases.template(TEMPLATE, make_tables)

    def copy(self, directory: Path) -> str:  # noqa: ARG002  # Of the protocol.
        return self._databases.new(self._template)

    def drop(self, url: str) -> None:
        self._databases.drop(url)


def url_in(directory: Path) -> str:
    return f"sqlite:///{directory}/service.db"


def make_tables(url: str) -> None:
    container = Container(Settings.from_env({"DATABASE_URL": url}))
    migrate(container)
    container.close()
