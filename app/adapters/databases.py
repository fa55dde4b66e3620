"""The port of the databases (log, read models, own stores), for SQLite and PostgreSQL."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from domain.errors import NotPossible
from domain.log.log import Stored
from domain.log.signal import Signal
from projections.engine.database import Database
from projections.engine.follower import Lock, Waker


class ListeningWaker(Waker, Protocol):
    """A waker that may hold a connection."""

    def start(self) -> None:
        """Begin to listen, also for threads of this process that wait through the signal."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The newest event of a log (position 0: none), by which two logs are compared."""

    position: int
    stream_id: str
    stream_version: int
    state_sha256: str  # Needed because the first events have the same place in every log.


class Databases(NamedTuple):
    """The databases of a process besides that of the log. Two of them may be the same one."""

    views: Database  # The read models.
    stores: Database  # Own stores that cost little to lose.
    keys: Database  # The keys of personal data, as durable as the log.


class Persistence(ABC):
    """The database system that an installation runs on.

    What a system has no need of is as here: a server has no files, and files have no roles.
    """

    error: type[Exception]  # The base class of its driver's errors.

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the data is, for people to read; holds no secret."""

    @abstractmethod
    def log_environment(self) -> Mapping[str, Any]:
        """Return the settings of the eventsourcing library."""

    @abstractmethod
    def databases(self) -> Databases: ...

    @abstractmethod
    def read_only(self, on_files: Sequence[str] = ()) -> Database:
        """Return the read models through sessions that can only read, beside the log.

        A session on files has the log's file attached as `log`, and begins with `on_files`.
        """

    @abstractmethod
    def waker(self, appended: Signal) -> ListeningWaker:
        """Return a waker that hears of commits to the log by any process."""

    @abstractmethod
    def lock(self, name: str) -> Lock:
        """Return a lock that one process holds until it releases it or ends."""

    def exists(self) -> bool:
        """Tell whether there can be tables, without creating an empty installation."""
        return True

    def has_all_files(self) -> bool:
        """Tell whether no file is missing that `migrate` would create."""
        return True

    def has_lost_its_log(self) -> bool:
        """Tell whether read models or own stores are there whose log is not."""
        return False

    @abstractmethod
    def fault(self) -> str | None:
        """Say why DATABASE_URL cannot be used, or can no longer be; None if it can."""

    @abstractmethod
    def migrating(self) -> AbstractContextManager[None]:
        """Keep other processes from migrating meanwhile; create missing database files."""

    def protect_log(self) -> None:  # noqa: B027  # Whoever can write to a file can change it.
        """Revoke the right to change events from the service's role, if there is one."""

    def may_change_events(self) -> bool:
        """Tell whether our role may change events in a database that could forbid it."""
        return False

    @abstractmethod
    def copy_to(self, directory: Path) -> LogEnd:
        """Copy what cannot be rebuilt while the installation runs; return where its log ended.

        A server's database is left out; `dump_commands` returns the commands that copy it.
        """

    def dump_commands(self, directory: Path) -> list[str]:  # noqa: ARG002  # As above.
        """Return the commands that dump the database and restore it; none for files."""
        return []

    def topics(self, directory: Path) -> list[str]:  # noqa: ARG002  # As above.
        """Return the topics of the events in the log of a backup; none if it cannot be read."""
        return []

    def occupied(self) -> str | None:
        """Name the data that exists already and that a backup must not overwrite."""
        return None

    @abstractmethod
    def put_back(self, directory: Path) -> bool:
        """Put the files of a backup in place; False while the server has no log yet."""

    @abstractmethod
    def fill_log(self, rows: Iterable[Stored]) -> None:
        """Write a whole log at its own positions, in one transaction; later events follow it.

        Raises NotPossible if the log holds an event, or if the rows lack a version of a stream.
        """


def find_gap(table: str) -> str:
    """Return the statement that finds a stream of a log that lacks a version."""
    return (
        f"SELECT originator_id FROM {table} GROUP BY originator_id "  # noqa: S608  # Our names.
        "HAVING min(originator_version) <> 1 OR max(originator_version) <> count(*) LIMIT 1"
    )


def end_of(row: Sequence[Any] | None) -> LogEnd:
    """Return the end of a log by its newest event: position, stream, version and bytes."""
    if row is None:
        return LogEnd(0, "", 0, "")
    stream_id = row[1] if isinstance(row[1], UUID) else UUID(row[1])
    return LogEnd(row[0], str(stream_id), row[2], sha256(row[3]).hexdigest())


def not_empty(place: str) -> NotPossible:
    """Return the error for a log that holds events already."""
    return NotPossible(f"{place}: the log holds events already; import into an empty place")


def not_whole(stream_id: UUID | None = None) -> NotPossible:
    """Return the error for rows that are not a whole log."""
    if stream_id is None:
        return NotPossible("an event of the export comes twice")
    return NotPossible(
        f"the export lacks events of stream {stream_id}: it is a part, or lines are missing"
    )


def persistence_at(url: str, role: str, service_role: str = "") -> Persistence:
    """Return the persistence of a DATABASE_URL; PostgreSQL shows `role` for each connection."""
    if url.startswith("sqlite:///"):
        from app.adapters.sqlite.database import SqliteFiles  # noqa: PLC0415  # Each loads only its own driver.

        return SqliteFiles(url)
    from app.adapters.postgres.database import PostgresDatabase  # noqa: PLC0415  # As above.

    return PostgresDatabase(url, role, service_role)
