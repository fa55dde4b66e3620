"""The log on PostgreSQL: one statement inserts, takes the lock and notifies listeners.

Values are sent and read in PostgreSQL's binary form (`array_recv`, `int8recv`), the same since 7.4,
because the driver's own conversion costs ten times more.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import chain
from struct import Struct
from uuid import UUID

import psycopg
from eventsourcing.persistence import StoredEvent
from eventsourcing.utils import get_topic
from sqlalchemy import text

from app.adapters.databases import SqlRecorder
from app.adapters.postgres.connection import DURABLE, is_lost
from app.adapters.postgres.server import CREATE, ServerPin
from app.adapters.postgres.waker import CHANNEL, NONE, WORK_CHANNEL, payload_of
from domain.ids import as_id
from domain.log.log import EventsGone, predecessors, with_news
from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement
from workers.routes import ROUTES

Parameters = Callable[[], Sequence[bytes]]  # Made once a connection has told the schema.

BIGINT, BYTEA, TEXT, UUID_ = 20, 17, 25, 2950  # Their numbers in `pg_type`.

_length = Struct("!i").pack
# Dimensions, whether there are NULLs, element type, length, first index.
_array = Struct("!iiIii").pack
bigint = Struct("!q").pack


def array(kind: int, values: Sequence[bytes]) -> bytes:
    elements = zip(map(_length, map(len, values)), values, strict=True)
    return b"".join([_array(1, 0, kind, len(values), 1), *chain.from_iterable(elements)])


def uuids(values: Iterable[UUID | str]) -> bytes:
    return array(UUID_, [as_id(each).int.to_bytes(16) for each in values])


def from_bigint(value: bytes) -> int:
    return int.from_bytes(value, signed=True)


# After these errors of a statement nothing was inserted: disk full, out of memory, read-only.
NOTHING_WRITTEN = {"53000", "53100", "53200", "53400", "25006", "55000"}

REQUESTS = ", ".join(f"'{get_topic(each)}'" for each in ROUTES)

# Inserts nothing if the event before the first new one of a stream is missing; the check costs one
# probe of the primary key for each stream. The subqueries hide the lengths of the arrays from the
# planner, which would otherwise make a new plan each time.
#
# A position that is not above all before it becomes NULL, which the column refuses. The statement
# sees the table as it was before it waited for the lock, so it also compares with `last_value`,
# which no snapshot hides; a sequence that was set back lies below both.
INSERT = (
    "WITH told AS MATERIALIZED ("  # noqa: S608  # Our own text.
    f"SELECT pg_advisory_xact_lock($5), {DURABLE}, "
    "coalesce(greatest((SELECT last_value FROM log_events_notification_id_seq WHERE is_called), "
    "(SELECT max(notification_id) FROM log_events)), 0) AS newest, "
    f"CASE WHEN $6 <> '{NONE}' THEN pg_notify('{CHANNEL}', $6) END, "
    f"CASE WHEN $3::text[] && ARRAY[{REQUESTS}] THEN pg_notify('{WORK_CHANNEL}', '') END "
    "WHERE NOT EXISTS ("
    "SELECT FROM unnest((SELECT $7::uuid[]), (SELECT $8::bigint[])) AS p (id, version) "
    "WHERE (SELECT b.topic FROM log_events AS b "
    "WHERE b.originator_id = p.id AND b.originator_version = p.version) IS NULL)) "
    "INSERT INTO log_events (notification_id, originator_id, originator_version, topic, state) "
    "SELECT CASE WHEN nextval('log_events_notification_id_seq') > told.newest "
    "THEN currval('log_events_notification_id_seq') END, e.id, e.version, e.topic, e.state "
    "FROM told, unnest($1::uuid[], $2::bigint[], $3::text[], $4::bytea[]) "
    "WITH ORDINALITY AS e (id, version, topic, state, place) "
    "ORDER BY e.place RETURNING notification_id"
).encode()

NEWEST = (  # The subquery hides the number of streams from the planner, as above.
    b"SELECT e.* FROM unnest((SELECT $1::uuid[])) AS asked (id) CROSS JOIN LATERAL ("
    b"SELECT originator_id, originator_version, topic, state FROM log_events "
    b"WHERE originator_id = asked.id ORDER BY originator_version DESC LIMIT 1) AS e"
)

# All events that the statement sees were numbered before it reads `last_value`.
SEQUENCE = HotStatement(
    text(
        "SELECT seqcache = 1 AND (last_value > newest OR is_called AND last_value = newest) "
        "FROM log_events_notification_id_seq, pg_sequence, "
        "(SELECT coalesce(max(notification_id), 0) AS newest FROM log_events) AS log "
        "WHERE seqrelid = CAST('log_events_notification_id_seq' AS regclass)"
    )
)
MEND_SEQUENCE = (
    "the sequence of the log gives positions that are not above its newest event; as the owner of "
    "the log run: ALTER SEQUENCE log_events_notification_id_seq CACHE 1; "
    "SELECT setval('log_events_notification_id_seq', greatest(last_value, "
    "(SELECT max(notification_id) FROM log_events))) FROM log_events_notification_id_seq"
)

WAKE = HotStatement(text(f"SELECT CAST(pg_notify('{CHANNEL}', '{NONE}') AS text)"))

# A log only grows, so vacuum has little to do, and statistics must be new.
CREATE_LOG = """
    CREATE TABLE IF NOT EXISTS log_events (
        originator_id uuid NOT NULL, originator_version bigint NOT NULL, topic text, state bytea,
        notification_id bigserial, PRIMARY KEY (originator_id, originator_version))
    WITH (
        autovacuum_enabled = true, autovacuum_vacuum_threshold = 100000000,
        autovacuum_vacuum_scale_factor = 0.5, autovacuum_analyze_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.01);
    CREATE UNIQUE INDEX IF NOT EXISTS log_events_notification_id_idx
        ON log_events (notification_id ASC)
"""


class PostgresLogRecorder(SqlRecorder):
    """Assigns positions under an exclusive advisory lock, so their order is that of commits.

    The lock, the notification and the rows are one statement in one round trip. The lock is named
    after schema and table. Rows are sent as binary arrays.
    """

    def __init__(self, database: Database, pin: ServerPin) -> None:
        super().__init__(database, "log_events", "notification_id")
        self._pin = pin

    def create_table(self) -> None:
        """Create the tables in the first schema of the session's search_path."""
        with self.translated(), self.database.lent() as connection:
            connection.run(f"{CREATE_LOG}; {CREATE}")

    def insert_events(self, stored_events: Sequence[StoredEvent]) -> Sequence[int]:
        """Insert; an insert that `_run` repeats may fail because the first one was committed.

        The log recognizes that.
        """
        if not stored_events:
            return []
        rows = self._run(INSERT, partial(self._parameters, stored_events), writes=True)
        if not rows:
            raise EventsGone
        return [from_bigint(position) for (position,) in rows]

    def select_newest(self, streams: Collection[UUID | str]) -> Sequence[StoredEvent]:
        return [
            StoredEvent(UUID(bytes=stream), from_bigint(version), topic.decode(), state)
            for stream, version, topic, state in self._run(NEWEST, lambda: [uuids(streams)])
        ]

    def _run(
        self, statement: bytes, parameters: Parameters, *, writes: bool = False
    ) -> Sequence[Sequence[bytes]]:
        """Run a statement; if the connection was broken, or takes no writes, on another one."""
        with self.translated():
            try:
                return self._run_once(statement, parameters, writes=writes)
            except psycopg.Error as error:
                if not is_lost(error):
                    raise
            return self._run_once(statement, parameters, writes=writes)

    def _run_once(
        self, statement: bytes, parameters: Parameters, *, writes: bool
    ) -> Sequence[Sequence[bytes]]:
        with self.database.lent() as connection:
            # Refused even if it was promoted since: new connections then tell another server.
            if writes and connection.is_standby:
                raise psycopg.errors.ReadOnlySqlTransaction
            try:
                found = connection.run_prepared(statement, parameters())
            except psycopg.errors.NotNullViolation:
                # The session goes, with the positions that it has cached of the sequence.
                raise psycopg.errors.ObjectNotInPrerequisiteState(MEND_SEQUENCE) from None
        columns = range(found.nfields)
        return [[found.get_value(row, it) or b"" for it in columns] for row in range(found.ntuples)]

    def _parameters(self, stored_events: Sequence[StoredEvent]) -> list[bytes]:
        before = predecessors(stored_events)
        return [
            uuids([event.originator_id for event in stored_events]),
            array(BIGINT, [bigint(event.originator_version) for event in stored_events]),
            array(TEXT, [event.topic.encode() for event in stored_events]),
            array(BYTEA, [event.state for event in stored_events]),
            bigint(self._pin.lock_key),
            payload_of(with_news(stored_events)).encode(),
            uuids(before),
            array(BIGINT, [*map(bigint, before.values())]),
        ]

    def fault(self) -> str | None:
        rows = self.query(SEQUENCE)
        return None if rows and all(rows[0]) else MEND_SEQUENCE

    def wake_followers(self) -> None:
        self.query(WAKE)

    def last_position_up_to(self, position: int) -> int:
        return self.newest_up_to(position)

    def server(self) -> str:
        return self._pin.name

    def is_over(self) -> bool:
        return self._pin.is_over

    def wrote_nothing(self, error: BaseException) -> bool:
        return getattr(error, "sqlstate", None) in NOTHING_WRITTEN
