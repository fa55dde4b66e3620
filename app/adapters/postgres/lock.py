"""Session locks on PostgreSQL: the process that holds one is active, the others stand by."""

import hashlib
import time
from contextlib import suppress

import psycopg

from app.adapters.postgres.connection import BoundedConnection
from domain.errors import ServiceUnavailable

STATEMENT_TIMEOUT_MS = 5_000
# How long to trust a lock without asking. A follower that has lost it is fenced by its position.
CHECK_S = 1.0

# The server must soon notice that a holder or its machine is gone, so that another process can take
# over. A follower also loses the lock if it is idle, because it is stopped or a step is long.
NOTICE_DEATH = (
    "SET tcp_keepalives_idle = 2; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 2; "
    "SET tcp_user_timeout = 4000; SET idle_session_timeout = '{}s'"
)
IDLE_S_MAX = 4


class SessionLock:
    """An advisory lock on a connection of its own; it ends with the connection.

    The server ends one that is idle for `idle_s_max`; 0 means never.
    """

    def __init__(self, conninfo: str, key: int, idle_s_max: int = IDLE_S_MAX) -> None:
        self._conninfo = conninfo
        self._key = key
        self._session = NOTICE_DEATH.format(idle_s_max)
        self._connection: BoundedConnection | None = None
        self._is_locked = False
        self._checked_at = 0.0

    def acquire(self) -> bool:
        """Take the lock if it is free; return whether we hold it. Raises if the server is away."""
        now = time.monotonic()
        if self._is_locked and now < self._checked_at + CHECK_S:
            return True
        try:
            self._is_locked = self._query()
        except psycopg.Error as error:
            self.release()
            raise ServiceUnavailable from error
        except BaseException:
            self.release()
            raise
        self._checked_at = now
        return self._is_locked

    def release(self) -> None:
        """Release the lock, so that another process can take over at once."""
        self._is_locked = False
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _query(self) -> bool:
        if self._connection is None:
            self._connection = BoundedConnection.open(
                self._conninfo, self._session, statement_timeout_ms=STATEMENT_TIMEOUT_MS
            )
        if self._is_locked:
            self._connection.execute("SELECT 1")
            return True
        row = self._connection.execute("SELECT pg_try_advisory_lock(%s)", [self._key]).fetchone()
        return row is not None and bool(row[0])


def key_of(name: str) -> int:
    """Return the number of an advisory lock: a signed 64-bit integer."""
    digest = hashlib.blake2b(f"carrier-links {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)
