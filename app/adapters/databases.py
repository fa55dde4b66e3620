"""The database system of an installation (log, read models, own stores): SQLite or PostgreSQL."""

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from domain.errors import NotPossible
from domain.ids import as_id
from projections.engine.database import Database

if TYPE_CHECKING:
    from app.adapters.postgres.database import PostgresDatabase
    from app.adapters.sqlite.database import SqliteFiles


class LogEnd(NamedTuple):
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
    return LogEnd(row[0], str(as_id(row[1])), row[2], sha256(row[3]).hexdigest())


def not_empty(where: str) -> NotPossible:
    return NotPossible(f"{where}: the log holds events already; import into an empty place")


def not_whole(stream_id: UUID | None = None) -> NotPossible:
    if stream_id is None:
        return NotPossible("an event of the export comes twice")
    return NotPossible(
        f"the export lacks events of stream {stream_id}: it is a part, or lines are missing"
    )


def persistence_at(url: str, role: str, service_role: str = "") -> "SqliteFiles | PostgresDatabase":
    """Return the system of a DATABASE_URL; PostgreSQL shows `role` for each connection.

    Both have the same methods, and mypy checks each call against both.
    """
    if url.startswith("sqlite:///"):
        from app.adapters.sqlite.database import SqliteFiles  # noqa: PLC0415  # Each loads only its own driver.

        return SqliteFiles(url)
    from app.adapters.postgres.database import PostgresDatabase  # noqa: PLC0415  # As above.

    return PostgresDatabase(url, role, service_role)
