"""The databases: the log, the read models and the own stores, on SQLite or on PostgreSQL."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from domain.signal import Signal
from domain.turns import Turns
from projections.database import Database
from projections.follower import Waker
from projections.standby import Lock


class ListeningWaker(Waker, Protocol):
    """A waker that may hold a connection."""

    def start(self) -> None:
        """Begin to listen, also for those who wait elsewhere in this process."""
        ...

    def close(self) -> None:
        """Listen no more."""
        ...


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

    def migrating(self) -> AbstractContextManager[None]:
        """Hold it for a migration, so that two processes take turns; makes what must be there."""
        ...


def persistence_at(url: str, role: str) -> Persistence:
    """Return the engine of a DATABASE_URL; a server shows the role of who is connected."""
    if url.startswith("sqlite:///"):
        from app.persistence.sqlite import SqliteFiles  # noqa: PLC0415  # Each loads its driver alone.

        return SqliteFiles(url)
    from app.persistence.postgres import PostgresDatabase  # noqa: PLC0415  # As above.

    return PostgresDatabase(url, role)
