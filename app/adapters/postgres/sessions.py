"""Checks that a session stays the same; a pooler in the wrong mode changes it all the time."""

import psycopg
from eventsourcing.persistence import OperationalError

from app.adapters.postgres.connection import BoundedConnection, ServerSilent

SHARED = (
    "leads to a pooler that gives each transaction another session; session locks, LISTEN and"
    " prepared statements need their own: use pool_mode = session, or connect directly"
)
NO_ROOM = (
    "leads to a pooler that had no second session to give within {seconds:.0f} s:"
    " its pool is full or too small"
)
NAME = "carrier_links.session"  # A setting that means nothing to the server, in case it leaks.
MARK = f"SELECT set_config('{NAME}', %s, false), pg_backend_pid()"
LOOK = f"SELECT current_setting('{NAME}', true), pg_backend_pid()"
# An irregular order, because a pooler that goes round its servers would pass a regular one.
ORDER = (0, 1, 1, 0, 0, 0, 1)


def fault_of_sessions(conninfo: str) -> str | None:
    """Say what is wrong if DATABASE_URL leads to shared sessions; None if sessions stay separate.

    Sets nothing that could harm the next user of such a session. Raises OperationalError when the
    server cannot be asked.
    """
    try:
        return _fault(conninfo)
    except psycopg.Error as error:
        raise OperationalError(str(error)) from error


def _fault(conninfo: str) -> str | None:
    with BoundedConnection.connect(conninfo, autocommit=True) as first:
        is_first = first.execute(MARK, ["first"]).fetchone()
        with BoundedConnection.connect(conninfo, autocommit=True) as second:
            try:
                is_second = second.execute(MARK, ["second"]).fetchone()
            except ServerSilent:
                return NO_ROOM.format(seconds=BoundedConnection.answer_s)
            known = ((first, is_first), (second, is_second))
            for each in ORDER:
                connection, was = known[each]
                if connection.execute(LOOK).fetchone() != was:
                    return SHARED
    return None
