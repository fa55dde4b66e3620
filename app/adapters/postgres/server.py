"""Tells to which server a connection leads, and to which life: a promotion begins a new one."""

import psycopg
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Composed, Identifier

from app.adapters.postgres.connection import BoundedConnection
from app.adapters.postgres.lock import key_of

# A promoted server may lack the newest commits of the server before it. Others may have seen their
# positions, so these must not be used again. The number of lost commits is unknown, so a promotion
# skips more positions than that can be. A bigint has room for nine thousand million promotions, a
# number in JSON for nine million.
POSITIONS_LEFT_OUT = 1_000_000_000

# The timeline of the last checkpoint changes late after a promotion. A standby writes no log.
PLACE = """
    SELECT to_hex(system_identifier) || '/' || CASE WHEN pg_is_in_recovery() THEN 'standby'
        ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END, pg_is_in_recovery()
    FROM pg_control_system()
"""
# Two stand-bys of one server may be promoted one after the other, both to the same timeline. So
# each life gets a random name, by which its log is recognized.
CREATE = """
    CREATE TABLE IF NOT EXISTS {servers} (
        place text PRIMARY KEY, life uuid NOT NULL DEFAULT gen_random_uuid())
"""
FIND = "SELECT life::text FROM {servers} WHERE place = %s"
LEAVE_OUT = """
    SELECT setval(sequence, nextval(sequence) + %s)
    FROM CAST(pg_get_serial_sequence(%s, 'notification_id') AS regclass) AS sequence
    WHERE EXISTS (SELECT FROM {servers})
"""
BEGIN = "INSERT INTO {servers} (place) VALUES (%s)"


class LogConnection(BoundedConnection):
    """A connection of the log that knows to which server it leads."""

    server = ""
    is_standby = False


class Servers:
    """The lives of servers that a log has had, in a table beside the log."""

    def __init__(self, schema: str, events_table: str) -> None:
        self._events = Identifier(schema, events_table).as_string()
        self._servers = Identifier(schema, f"{events_table}_servers")
        self._lock_key = key_of(f"{schema}.{events_table} servers")

    @property
    def create_statement(self) -> Composed:
        return self._sql(CREATE)

    def look(self, connection: LogConnection) -> None:
        """Find out to which life a new connection leads; the first connection to it names it."""
        with connection.cursor(row_factory=tuple_row) as cursor:
            place, is_standby = cursor.execute(PLACE).fetchone() or ("", True)
            connection.server, connection.is_standby = place, is_standby
            try:
                life = self._find(cursor, place)
                if life is None and not is_standby:
                    life = self._begin(connection, cursor, place)
            except (psycopg.errors.UndefinedTable, psycopg.errors.ReadOnlySqlTransaction):
                # `migrate` has not run yet, or the server takes no writes, so nothing can go wrong.
                return
            connection.server = f"{place}/{life}"

    def _find(self, cursor: psycopg.Cursor[tuple[object, ...]], place: str) -> object:
        row = cursor.execute(self._sql(FIND), [place]).fetchone()
        return None if row is None else row[0]

    def _begin(
        self, connection: LogConnection, cursor: psycopg.Cursor[tuple[object, ...]], place: str
    ) -> object:
        with connection.transaction():
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [self._lock_key])
            if self._find(cursor, place) is None:  # Another process may have been first.
                cursor.execute(self._sql(LEAVE_OUT), [POSITIONS_LEFT_OUT, self._events])
                cursor.execute(self._sql(BEGIN), [place])
        return self._find(cursor, place)

    def _sql(self, statement: str) -> Composed:
        return SQL(statement).format(servers=self._servers)
