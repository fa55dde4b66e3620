"""The databases: the log, the read models and the own stores, on SQLite or on PostgreSQL."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from domain.accounts.turns import Turns
from domain.log.signal import Signal
from projections.engine.database import Database
from projections.engine.follower import Lock, Waker


class ListeningWaker(Waker, Protocol):
    """A waker that may hold a connection."""

    def start(self) -> None:
        """Begin to listen, also for those who wait elsewhere in this process."""
        ...

    def close(self) -> None:
        """Listen no more."""
        ...


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The newest event of a log (position 0: there is none), by which two logs are compared."""

    position: int
    stream_id: str
    stream_version: int
    state_sha256: str  # Some events have the same place in every log.


class Persistence(Protocol):
    """The engine that an installation runs on."""

    @property
    def error(self) -> type[Exception]:
        """What its driver raises."""
        ...

    @property
    def place(self) -> str:
        """Name it to people; no secrets."""
        ...

    def log_environment(self) -> Mapping[str, str]:
        """Return the settings of the event log's library."""
        ...

    def databases(self) -> tuple[Database, Database, Database]:
        """Return the read models, the own stores, and the keys, which are as durable as the log."""
        ...

    def waker(self, appended: Signal) -> ListeningWaker:
        """Return what hears of commits to the log, in whatever process."""
        ...

    def lock(self, name: str) -> Lock:
        """Return a lock between the processes of the installation."""
        ...

    def turns(self) -> Turns:
        """Return what a process takes turns by, at wallets that others move too."""
        ...

    def exists(self) -> bool:
        """Tell whether there can be tables; opening must not make an empty installation."""
        ...

    def fault(self) -> str | None:
        """Say what DATABASE_URL must not lead to; None when its sessions are kept."""
        ...

    def migrating(self) -> AbstractContextManager[None]:
        """Hold it for a migration, so that two processes take turns; makes what must be there."""
        ...

    def copy_to(self, directory: Path) -> LogEnd:
        """Copy what cannot be rebuilt, of a running installation; return where its log ended.

        What a server's own program has to copy is left out: `dump_commands` says how.
        """
        ...

    def dump_commands(self, directory: Path) -> list[str]:
        """Return what to run to copy the database into a backup, and out of it; none for files."""
        ...

    def topics(self, directory: Path) -> list[str]:
        """Return the kinds of events in the log of a backup, where it can be looked into."""
        ...

    def occupied(self) -> str | None:
        """Name what is there already and must not be overwritten by a backup."""
        ...

    def put_back(self, directory: Path) -> bool:
        """Put the files of a backup in place; False while the server has no log in it yet."""
        ...


def persistence_at(url: str, role: str) -> Persistence:
    """Return the engine of a DATABASE_URL; a server shows the role of who is connected."""
    if url.startswith("sqlite:///"):
        from app.adapters.sqlite.database import SqliteFiles  # noqa: PLC0415  # Each loads its driver alone.

        return SqliteFiles(url)
    from app.adapters.postgres.database import PostgresDatabase  # noqa: PLC0415  # As above.

    return PostgresDatabase(url, role)
