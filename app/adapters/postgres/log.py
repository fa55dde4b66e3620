"""The log on PostgreSQL: one statement inserts, takes the lock and notifies listeners.

Values are sent and read in PostgreSQL's binary form (`array_recv`, `int8recv`), the same since 7.4,
because the driver's own conversion costs ten times more.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from struct import Struct
from typing import Any, Self, TypeVar, cast
from uuid import UUID

import psycopg
from eventsourcing import persistence
from eventsourcing.persistence import (
    InfrastructureFactory,
    InterfaceError,
    InternalError,
    OperationalError,
    PersistenceError,
    StoredEvent,
)
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore, PostgresFactory
from eventsourcing.utils import Environment, EnvType, get_topic
from psycopg.abc import Query
from psycopg.pq import Format
from psycopg.rows import dict_row, tuple_row
from psycopg.sql import SQL, Identifier, Literal
from psycopg_pool import ConnectionPool, PoolTimeout

from app.adapters.postgres.connection import DURABLE, BoundedConnection, ServerSilent
from app.adapters.postgres.lock import key_of
from app.adapters.postgres.server import CREATE, OtherServer, ServerPin
from app.adapters.postgres.waker import NONE, WORK_CHANNEL, payload_of
from domain.ids import as_id
from domain.log.log import EventsGone, LogRow, NothingInserted, predecessors, with_news
from workers.routes import ROUTES

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


def from_bigint(value: bytes | None) -> int:
    assert value is not None
    return int.from_bytes(value, signed=True)


POOL_MAX = 3  # Connections of one process; opened when they are needed, and kept.
POOL_WAIT_S = 3.0
REFUSAL_S = 10.0  # A refusal by the server that is older than this does not explain an empty pool.
RECONNECT_S = 1.0  # With a longer pause the pool would notice late that the server is back.

# After these errors of a statement nothing was inserted: disk full, out of memory, read-only.
NOTHING_WRITTEN = {"53000", "53100", "53200", "53400", "25006", "55000"}

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
    "coalesce(greatest((SELECT last_value FROM {sequence} WHERE is_called), "
    "(SELECT max(notification_id) FROM {table})), 0) AS newest, "
    f"CASE WHEN $7 <> '{NONE}' THEN pg_notify($6, $7) END, "
    "CASE WHEN $3::text[] && {asking} THEN pg_notify({work}, '') END WHERE NOT EXISTS ("
    "SELECT FROM unnest((SELECT $8::uuid[]), (SELECT $9::bigint[])) AS p (id, version) "
    "WHERE (SELECT b.topic FROM {table} AS b "
    "WHERE b.originator_id = p.id AND b.originator_version = p.version) IS NULL)) "
    "INSERT INTO {table} (notification_id, originator_id, originator_version, topic, state) "
    "SELECT CASE WHEN nextval({named}) > told.newest THEN currval({named}) END, "
    "e.id, e.version, e.topic, e.state "
    "FROM told, unnest($1::uuid[], $2::bigint[], $3::text[], $4::bytea[]) "
    "WITH ORDINALITY AS e (id, version, topic, state, place) "
    "ORDER BY e.place RETURNING notification_id"
)

SEQUENCE = (
    "SELECT seqcache = 1 AND (last_value > newest OR is_called AND last_value = newest) "
    "FROM {sequence}, pg_sequence, "
    "(SELECT coalesce(max(notification_id), 0) AS newest FROM {table}) AS log "
    "WHERE seqrelid = {named}"
)  # All events that the statement sees were numbered before it reads `last_value`.
MEND_SEQUENCE = (
    "the sequence of the log gives positions that are not above its newest event; as the owner of "
    "the log run: ALTER SEQUENCE {sequence} CACHE 1; SELECT setval('{sequence}', "
    "greatest(last_value, (SELECT max(notification_id) FROM {table}))) FROM {sequence}"
)

READ = (
    "SELECT notification_id, originator_id, originator_version, topic, "
    "CASE WHEN topic = ANY({unused}::text[]) THEN NULL ELSE state END "
    "FROM {table} WHERE notification_id > %s ORDER BY notification_id LIMIT %s"
)

OF_STREAMS = (
    "SELECT notification_id, originator_id, originator_version, topic, state "
    "FROM {table} WHERE originator_id = ANY(%s) ORDER BY notification_id"
)

COUNT = (
    "SELECT count(*) FROM (SELECT FROM {table} WHERE notification_id > %s "
    "AND notification_id <= %s ORDER BY notification_id LIMIT %s) AS counted"
)

NEWEST = (  # The subquery hides the number of streams from the planner, as above.
    "SELECT e.* FROM unnest((SELECT $1::uuid[])) AS asked (id) CROSS JOIN LATERAL ("
    "SELECT originator_id, originator_version, topic, state FROM {table} "
    "WHERE originator_id = asked.id ORDER BY originator_version DESC LIMIT 1) AS e"
)

T = TypeVar("T")


class BinaryCursor(psycopg.Cursor[Any]):
    """Asks for binary results; as text PostgreSQL writes the state of an event twice as long."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.format = Format.BINARY


class Datastore(PostgresDatastore):
    """The log's connection pool; it can be made while the server is away.

    The library's own asks the server for composite types, which we do not use.
    """

    def __init__(self, conninfo: str, pin: ServerPin | None = None) -> None:
        super().__init__("", "", "", "", "", originator_id_type="uuid")
        self.pin = pin or ServerPin()
        # Set by the recorder, which knows the names of the tables; called when the first connection
        # has told which schema they are in.
        self.compose: Callable[[], object] = lambda: None
        self._has_schema = False
        self.refusals = deque[tuple[float, psycopg.Error]](maxlen=1)
        self.pool = ConnectionPool(  # type: ignore[assignment]  # The library's own pool differs only in adding passwords.
            conninfo,
            kwargs={"row_factory": dict_row, "autocommit": True, "cursor_factory": BinaryCursor},
            connection_class=_remembering(self.refusals),
            configure=lambda connection: self._check_server(connection, conninfo),
            min_size=0,
            max_size=POOL_MAX,
            open=False,
            timeout=POOL_WAIT_S,
            reconnect_timeout=RECONNECT_S,
            name="log",
        )

    def register_type_adapters(self) -> None:
        """Ask the server nothing."""

    @contextmanager
    def get_connection(self) -> Iterator[Any]:
        """Lend a connection to the server that answered first; raises once another one answers.

        The library's own also commits. Its errors have the names of the driver's, or of parents.
        """
        try:
            if self.pool.closed:
                self.pool.open()
            connection = self.pool.getconn()
            try:
                self.pin.require()
                yield connection
            finally:
                self.pool.putconn(connection)
        except psycopg.Error as error:
            kinds = (vars(persistence).get(it.__name__) for it in type(error).__mro__)
            raise next(filter(None, kinds), PersistenceError)(str(error)) from error

    def _check_server(self, connection: BoundedConnection, conninfo: str) -> None:
        with _remembered(self.refusals):
            connection.set_up(conninfo)
            if not self._has_schema:
                schema = connection.run("SELECT current_schema()").get_value(0, 0)
                self.schema = (schema or b"public").decode()
                self.compose()
                self._has_schema = True
            connection.is_standby = self.pin.check(connection)

    def again(self, call: Callable[[], T]) -> T:
        """Call; if the connection was broken, call once more on a sound connection.

        A repeated insert may fail because the first one was committed; the log recognizes that.
        The first call waits for a connection, because its statement depends on the schema.
        """
        try:
            if not self._has_schema:
                with self.get_connection():
                    pass
            return call()
        except (InterfaceError, OperationalError) as error:
            if not _is_lost(error):
                self._explain(error)
                raise
            if isinstance(error.__cause__, ServerSilent):
                self.pool.drain()  # To check the other connections could take as long for each.
            else:
                self.pool.check()
            return call()

    def _explain(self, error: Exception) -> None:
        """Set the server's refusal as the cause of an error; the pool only reports a time-out."""
        if not isinstance(error.__cause__, PoolTimeout) or not self.refusals:
            return
        refused_at, refusal = self.refusals[-1]
        if time.monotonic() < refused_at + REFUSAL_S:
            error.__cause__ = refusal


@contextmanager
def _remembered(refusals: deque[tuple[float, psycopg.Error]]) -> Iterator[None]:
    """Remember why the last connection could not be opened, or was of no use."""
    try:
        yield
    except psycopg.Error as error:
        refusals.append((time.monotonic(), error))
        raise


def _remembering(refusals: deque[tuple[float, psycopg.Error]]) -> type[BoundedConnection]:
    class Remembering(BoundedConnection):
        @classmethod
        def connect(cls, *args: Any, **options: Any) -> Self:
            with _remembered(refusals):
                return super().connect(*args, **options)

    return Remembering


def _without_retries(method: Callable[..., T]) -> Callable[..., T]:
    """Return a method of the library without its retrying decorator, on a sound connection."""
    read = getattr(method, "__wrapped__", method)
    return lambda self, *args, **options: self.datastore.again(lambda: read(self, *args, **options))


class PostgresLogRecorder(PostgresApplicationRecorder):
    """Assigns positions under an exclusive advisory lock, so their order is that of commits.

    The lock, the notification and the rows are one statement in one round trip, where the library
    needs six. The lock is named after schema and table. Rows are sent as binary arrays, not as
    composite types, and the library's ten retries are left out.
    """

    datastore: Datastore

    def __init__(
        self, datastore: PostgresDatastore, *, events_table_name: str = "stored_events"
    ) -> None:
        assert isinstance(datastore, Datastore)
        self._compose(datastore, events_table_name)
        datastore.compose = partial(self._compose, datastore, events_table_name)

    def _compose(self, datastore: Datastore, events_table_name: str) -> None:
        """Compose the statements on tables in the schema of the datastore."""
        super().__init__(datastore, events_table_name=events_table_name)
        # Without its composite types and function.
        tables = ("CREATE TABLE", "CREATE UNIQUE INDEX")
        made = self.sql_create_statements
        self.sql_create_statements = [it for it in made if it.as_string().startswith(tables)]
        self._table = Identifier(self.datastore.schema, events_table_name)
        topics = Literal([get_topic(each) for each in ROUTES])
        sequence = f"{events_table_name}_notification_id_seq"
        self._mend_sequence = MEND_SEQUENCE.format(sequence=sequence, table=events_table_name)
        name = Identifier(self.datastore.schema, sequence)
        named = SQL("{}::regclass").format(Literal(name.as_string()))
        names = {"table": self._table, "sequence": name, "named": named}
        insert = SQL(INSERT).format(asking=topics, work=Literal(WORK_CHANNEL), **names)
        self._insert_statement = insert.as_bytes()
        self._sequence_statement = SQL(SEQUENCE).format(**names)
        self._newest_statement = SQL(NEWEST).format(table=self._table).as_bytes()
        self._reads: dict[frozenset[str], bytes] = {}
        self._lock_key = key_of(f"{self.datastore.schema}.{events_table_name}")
        self.sql_create_statements.append(SQL(CREATE).format())

    def create_table(self) -> None:
        """Create the tables in the first schema of the session's search_path."""
        self.datastore.again(lambda: PostgresApplicationRecorder.create_table(self))

    def insert_events(self, stored_events: Sequence[StoredEvent], **_: Any) -> Sequence[int]:
        """Insert all events or none; return their positions.

        Raises EventsGone if this log lacks the event before the first new one of a stream.
        """
        if not stored_events:
            return []
        try:
            return self.datastore.again(lambda: self._insert(stored_events))
        except NothingInserted as refusal:
            if not isinstance(refusal.__cause__, psycopg.errors.ReadOnlySqlTransaction):
                raise
            self.datastore.pool.drain()  # New connections may lead to a server that takes writes.
            return self.datastore.again(lambda: self._insert(stored_events))

    def _insert(self, stored_events: Sequence[StoredEvent]) -> Sequence[int]:
        parameters = self._parameters(stored_events)
        try:
            with self.datastore.get_connection() as connection:
                # Refused even if it was promoted since: new connections then tell another server.
                if connection.is_standby:
                    raise psycopg.errors.ReadOnlySqlTransaction
                try:
                    found = connection.run_prepared(self._insert_statement, parameters)
                except psycopg.errors.NotNullViolation:
                    # Or this session goes on with what it has cached when the sequence is mended.
                    connection.run("DISCARD SEQUENCES")
                    fault = psycopg.errors.ObjectNotInPrerequisiteState(self._mend_sequence)
                    raise fault from None
        # Writing on a standby is an internal error.
        except (InternalError, OperationalError) as error:
            if getattr(error.__cause__, "sqlstate", None) in NOTHING_WRITTEN:
                raise NothingInserted(*error.args) from error.__cause__
            raise
        if not found.ntuples:
            raise EventsGone
        return [from_bigint(found.get_value(row, 0)) for row in range(found.ntuples)]

    def fault(self) -> str | None:
        """Say what to run if positions that the sequence gives may not rise; None if they do."""
        rows = self.datastore.again(lambda: self._fetch(self._sequence_statement, (), prepare=True))
        return None if rows and all(rows[0]) else self._mend_sequence

    def _parameters(self, stored_events: Sequence[StoredEvent]) -> list[bytes]:
        before = predecessors(stored_events)
        return [
            uuids([event.originator_id for event in stored_events]),
            array(BIGINT, [bigint(event.originator_version) for event in stored_events]),
            array(TEXT, [event.topic.encode() for event in stored_events]),
            array(BYTEA, [event.state for event in stored_events]),
            bigint(self._lock_key),
            self.channel_name.encode(),
            payload_of(with_news(stored_events)).encode(),
            uuids(before),
            array(BIGINT, [*map(bigint, before.values())]),
        ]

    select_events = _without_retries(PostgresApplicationRecorder.select_events)
    select_notifications = _without_retries(PostgresApplicationRecorder.select_notifications)
    max_notification_id = _without_retries(PostgresApplicationRecorder.max_notification_id)

    def select_rows(self, after: int, limit: int, unused: frozenset[str]) -> Sequence[LogRow]:
        """Read the log without the library's objects, which cost more than the rows."""
        return self.datastore.again(lambda: self._rows(unused, after, limit))

    def _rows(self, unused: frozenset[str], after: int, limit: int) -> Sequence[LogRow]:
        if (statement := self._reads.get(unused)) is None:
            composed = SQL(READ).format(table=self._table, unused=Literal(sorted(unused)))
            statement = self._reads[unused] = composed.as_bytes()
        return self._fetch(statement, (after, limit), prepare=True)

    def _fetch(self, statement: Query, values: Sequence[Any], **how: bool) -> Sequence[LogRow]:
        with (
            self.datastore.get_connection() as connection,
            connection.cursor(row_factory=tuple_row) as cursor,
        ):
            return [*cursor.execute(statement, values, **how).fetchall()]

    def select_streams(self, streams: Collection[UUID]) -> Sequence[LogRow]:
        """Return every row of these streams, in the order of the log."""
        statement = SQL(OF_STREAMS).format(table=self._table)
        return self.datastore.again(lambda: self._fetch(statement, [[*streams]]))

    def count_rows(self, after: int, until: int, most: int) -> int:
        statement = SQL(COUNT).format(table=self._table)
        return int(self._fetch(statement, (after, until, most))[0][0])

    def wake_followers(self) -> None:
        """Wake the followers of all processes, as no commit of mere steps does."""
        with self.datastore.get_connection() as connection:
            connection.execute("SELECT pg_notify(%s, %s)", (self.channel_name, NONE), prepare=True)

    def select_newest(self, streams: Collection[UUID | str]) -> Sequence[StoredEvent]:
        return self.datastore.again(lambda: self._newest(streams))

    def _newest(self, streams: Collection[UUID | str]) -> Sequence[StoredEvent]:
        with self.datastore.get_connection() as connection:
            found = connection.run_prepared(self._newest_statement, [uuids(streams)])
        value = found.get_value
        return [
            StoredEvent(
                UUID(bytes=value(row, 0)),
                from_bigint(value(row, 1)),
                (value(row, 2) or b"").decode(),
                value(row, 3) or b"",
            )
            for row in range(found.ntuples)
        ]

    def last_position_up_to(self, position: int) -> int:
        statement = self.max_notification_id_statement + SQL(" WHERE notification_id <= %s")
        return self._fetch(statement, [position])[0][0] or 0

    def server(self) -> str:
        """The server that answers, with the name of its life (see `server`)."""
        return self.datastore.pin.name

    def is_over(self) -> bool:
        return self.datastore.pin.is_over


class Factory(PostgresFactory):
    """Opens the log at `LOG_CONNINFO`, on the server of `LOG_PIN`."""

    def __init__(self, env: Environment | EnvType | None) -> None:
        # Not that of PostgresFactory, which reads a setting for each part of the address.
        InfrastructureFactory.__init__(self, env)
        pin = cast("ServerPin | None", self.env.get("LOG_PIN"))  # Shared with other pools.
        self.datastore = Datastore(self.env["LOG_CONNINFO"], pin)

    application_recorder_class = PostgresLogRecorder


def _is_lost(error: Exception) -> bool:
    """Tell whether the connection broke, as opposed to an error that the server sent."""
    cause = error.__cause__
    if isinstance(cause, OtherServer):
        return False
    state = getattr(cause, "sqlstate", None)
    if isinstance(cause, psycopg.Error) and state is not None:
        return str(state).startswith(("08", "57P"))
    return not type(cause).__name__.startswith("PoolTimeout")
