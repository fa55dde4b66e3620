"""What is logged of an error, without what its text may quote: its place, or the driver's words."""

import logging
import traceback

from eventsourcing.persistence import PersistenceError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.watch.logging import mask
from domain.errors import ClockOff, Conflict, InstallationHeld, ServiceUnavailable

NOT_MIGRATED = "the tables of this installation are not up to date; run: python -m app migrate"
RESTORE = "move what is there away, then restore it from a backup, or begin anew"
RIGHTS = "the `migrate` of the owner with SERVICE_ROLE gives the service its rights"
NO_ROOM = "the process has no room for more, or a race did not end; the database has not failed"

REFUSAL = "FATAL:"  # PostgreSQL begins with it when it refuses a connection.
UNDEFINED = frozenset({"42P01", "42703"})  # A table or view, a column.
MISSING = ("no such table", "no such column")  # SQLite's messages for the same.


def log_traceback(logger: logging.Logger, error: BaseException) -> None:
    """Log where an error was raised but not its text, which may hold a number or a token."""
    trace = "".join(traceback.format_tb(error.__traceback__))
    logger.error("%s raised in\n%s", type(error).__name__, trace)


def trouble_of(error: BaseException, location: str) -> str:
    """Say why the database at `location` failed, without passwords; `migrate` if tables miss."""
    root = _root(error)
    lines, state = mask(str(root)).splitlines() or [""], getattr(root, "sqlstate", None)
    said = lines[0].strip()  # The other lines may quote values.
    if isinstance(root, InstallationHeld | ClockOff):
        return str(root)
    if isinstance(root, ServiceUnavailable | Conflict):
        return NO_ROOM
    if state in UNDEFINED or said.startswith(MISSING):
        return NOT_MIGRATED
    if isinstance(root, PoolTimeout) or type(root).__name__ == "PoolTimeout":
        return f"a full pool: every connection of this process to {location} is in use ({said})"
    if REFUSAL in said:
        return f"the database {location} refuses: {said.partition(REFUSAL)[2].strip()}"
    if state is None and not hasattr(root, "sqlite_errorcode"):
        text = "; ".join(line.strip() for line in lines) or type(root).__name__  # One per host.
        return f"the database {location} cannot be reached: {text}"
    more = f"; {RIGHTS}" if state == "42501" or said.startswith('role "') else ""
    return f"the database {location} says: {said}{more}"


def _root(error: BaseException) -> BaseException:
    """Return the error of the driver, which is the last one in the chain."""
    while isinstance(error, ServiceUnavailable | PersistenceError | DBAPIError):
        cause = error.orig if isinstance(error, DBAPIError) else error.__cause__
        if cause is None:
            break
        error = cause
    return error
