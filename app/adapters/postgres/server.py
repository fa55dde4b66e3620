"""Tells to which server a connection leads, and to which life: a promotion begins a new one.

All connections of a container lead to the server that answered first. When another one answers, the
container is over: what it holds in memory may be lost there, so every call fails from then on.
"""

from threading import Lock

import psycopg
from psycopg.rows import tuple_row

from app.adapters.postgres.lock import key_of

# A promoted server may lack the newest commits of the server before it. Others may have seen their
# positions, so these must not be used again. The number of lost commits is unknown, so a promotion
# skips more positions than that can be. A bigint has room for nine thousand million promotions, a
# number in JSON for nine million.
POSITIONS_LEFT_OUT = 1_000_000_000

# The timeline of the last checkpoint changes late after a promotion. A standby writes no log.
LOCATION = """
    SELECT to_hex(system_identifier) || '/' || CASE WHEN pg_is_in_recovery() THEN 'standby'
        ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END, pg_is_in_recovery()
    FROM pg_control_system()
"""
# Two stand-bys of one server may be promoted one after the other, both to the same timeline. So
# each life gets a random name, by which its log is recognized.
CREATE = """
    CREATE TABLE IF NOT EXISTS log_events_servers (
        place text PRIMARY KEY, life uuid NOT NULL DEFAULT gen_random_uuid())
"""
SELECT = "SELECT life::text FROM log_events_servers WHERE place = %s"
LEAVE_OUT = """
    SELECT setval(sequence, nextval(sequence) + %s)
    FROM CAST(pg_get_serial_sequence('log_events', 'notification_id') AS regclass) AS sequence
    WHERE EXISTS (SELECT FROM log_events_servers)
"""
INSERT = "INSERT INTO log_events_servers (place) VALUES (%s)"


class OtherServer(psycopg.OperationalError):
    """Raised when another server answers than the one that a container was built on."""


class ServerPin:
    """The server that all connections of one container lead to: the first one that answered.

    Its lives are named in a table beside the log, by which the first connection to a promoted
    server is recognized.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._location = ""
        self._life: object = None  # None: `migrate` has not run yet.
        self.is_over = False  # Another server has answered.

    @property
    def name(self) -> str:
        return f"{self._location}/{self._life}"

    def require(self) -> None:
        if self.is_over:
            raise OtherServer("another server answers now; this process begins anew")

    def check(self, connection: psycopg.Connection) -> bool:
        """Compare the server of a new connection; return whether it is a standby."""
        with connection.cursor(row_factory=tuple_row) as cursor:
            location, is_standby = cursor.execute(LOCATION).fetchone() or ("", True)
            life = None
            try:
                life = self._load(cursor, location)
                if life is None and not is_standby:
                    life = self._insert(cursor, location)
            # `migrate` has not run yet, or the server takes no writes, so nothing can go wrong.
            except (psycopg.errors.UndefinedTable, psycopg.errors.ReadOnlySqlTransaction):
                if not connection.autocommit:
                    connection.rollback()
        with self._lock:
            self._location = self._location or str(location)
            self._life = life if self._life is None else self._life
            if self._location != str(location) or (life is not None and self._life != life):
                self.is_over = True
        return bool(is_standby)

    def _load(self, cursor: psycopg.Cursor[tuple[object, ...]], location: str) -> object:
        row = cursor.execute(SELECT, [location]).fetchone()
        return None if row is None else row[0]

    def _insert(self, cursor: psycopg.Cursor[tuple[object, ...]], location: str) -> object:
        with cursor.connection.transaction():
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key_of("log_events servers")])
            if self._load(cursor, location) is None:  # Another process may have been first.
                cursor.execute(LEAVE_OUT, [POSITIONS_LEFT_OUT])
                cursor.execute(INSERT, [location])
        return self._load(cursor, location)
