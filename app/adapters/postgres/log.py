"""The log on PostgreSQL: every insert is one statement, under one lock, and tells who listens.

Values as PostgreSQL takes and gives them in binary: the driver's own way costs ten times more.

The format is that of `array_recv` and `int8recv` in the server; it has not changed since 7.4.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from struct import Struct
from threading import local
from typing import Any, Self, TypeVar, cast
from uuid import UUID

import psycopg
from eventsourcing.persistence import (
    InfrastructureFactory,
    InterfaceError,
    InternalError,
    Notification,
    OperationalError,
    StoredEvent,
)
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore, PostgresFactory
from eventsourcing.utils import Environment, EnvType, get_topic
from psycopg.pq import Format
from psycopg.rows import dict_row, tuple_row
from psycopg.sql import SQL, Identifier, Literal
from psycopg_pool import ConnectionPool, PoolTimeout

from app.adapters.postgres.connection import DURABLE, ServerSilent
from app.adapters.postgres.lock import key_of
from app.adapters.postgres.server import Connection, Servers
from app.adapters.postgres.waker import WORK_CHANNEL, tell
from domain.log.log import LogRow, NothingInserted, OtherLog, predecessors, with_news
from workers.routes import ROUTES

BIGINT, BYTEA, TEXT, UUID_ = 20, 17, 25, 2950  # By their numbers in `pg_type`.

_length = Struct("!i").pack
_array = Struct("!iiIii").pack  # Dimensions, whether there are NULLs, type, length, first index.
bigint = Struct("!q").pack


def bigints(values: Iterable[int]) -> bytes:
    """Return `bigint[]`."""
    return _array_of(BIGINT, [bigint(each) for each in values])


def byteas(values: Iterable[bytes]) -> bytes:
    """Return `bytea[]`."""
    return _array_of(BYTEA, [*values])


def texts(values: Iterable[str]) -> bytes:
    """Return `text[]`."""
    return _array_of(TEXT, [each.encode() for each in values])


def uuids(values: Iterable[UUID | str]) -> bytes:
    """Return `uuid[]`."""
    return _array_of(
        UUID_, [(each if isinstance(each, UUID) else UUID(each)).bytes for each in values]
    )


def from_bigint(value: bytes | None) -> int:
    """Return the number of a `bigint` that is not NULL."""
    assert value is not None
    return int.from_bytes(value, signed=True)


def _array_of(kind: int, values: Sequence[bytes]) -> bytes:
    elements = [_length(len(each)) + each for each in values]
    return b"".join([_array(1, 0, kind, len(elements), 1), *elements])


POOL_MAX = 3  # Connections of one process; they are opened as they are wanted, and kept.
POOL_WAIT_S = 3.0
REFUSAL_S = 10.0  # So long ago the server may have refused whom a pool could not serve.
RECONNECT_S = 1.0  # A pool that backs off longer is late when the server is there again.

# The statement failed and with it the whole insert: disk full, out of memory, read only.
NOTHING_WRITTEN = {"53000", "53100", "53200", "53400", "25006"}

# Nothing is inserted when the event before the first of a stream is missing: one probe of the
# primary key for each. A planner that saw how few they are would plan the statement anew each time.
INSERT = (
    "WITH told AS MATERIALIZED ("  # noqa: S608  # Our own text.
    f"SELECT pg_advisory_xact_lock($5), pg_notify($6, $7), {DURABLE}, "
    "CASE WHEN $3::text[] && {asking} THEN pg_notify({work}, '') END WHERE NOT EXISTS ("
    "SELECT FROM unnest((SELECT $8::uuid[]), (SELECT $9::bigint[])) AS p (id, version) "
    "WHERE (SELECT b.topic FROM {table} AS b "
    "WHERE b.originator_id = p.id AND b.originator_version = p.version) IS NULL)) "
    "INSERT INTO {table} (originator_id, originator_version, topic, state) "
    "SELECT e.id, e.version, e.topic, e.state "
    "FROM told, unnest($1::uuid[], $2::bigint[], $3::text[], $4::bytea[]) "
    "WITH ORDINALITY AS e (id, version, topic, state, place) "
    "ORDER BY e.place RETURNING notification_id"
)

READ = (
    "SELECT notification_id, originator_id, originator_version, topic, "
    "CASE WHEN topic = ANY({unused}::text[]) THEN NULL ELSE state END "
    "FROM {table} WHERE notification_id > %s ORDER BY notification_id LIMIT %s"
)

BEGUN = (
    "SELECT originator_id FROM {table} "
    "WHERE originator_id = ANY($1::uuid[]) AND originator_version = 1"
)

T = TypeVar("T")


class BinaryCursor(psycopg.Cursor[Any]):
    """Asks for results in binary: as text PostgreSQL writes the state of an event twice as long."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.format = Format.BINARY


class Datastore(PostgresDatastore):
    """A pool of the log's connections; no composite types, so nothing is asked at construction."""

    def __init__(self, conninfo: str) -> None:
        super().__init__("", "", "", "", "", originator_id_type="uuid")
        self.servers: Servers | None = None  # Set by who knows the names of the tables.
        self._newest = ""  # Where the newest connection leads.
        self._lent = local()
        self.refusals = deque[tuple[float, psycopg.Error]](maxlen=1)
        self.pool = ConnectionPool(  # type: ignore[assignment]  # The library's only adds passwords.
            conninfo,
            kwargs={
                "row_factory": dict_row,
                "autocommit": True,
                "cursor_factory": BinaryCursor,
            },
            connection_class=_noting(self.refusals),
            configure=lambda connection: self._look(connection, conninfo),
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
        """Lend a connection; `server` tells where it led, to the same thread."""
        with super().get_connection() as connection:
            self._lent.server = cast("Connection", connection).server
            yield connection

    @property
    def server(self) -> str:
        """Where the last connection led that this thread was lent."""
        return getattr(self._lent, "server", self._newest)

    def _look(self, connection: Connection, conninfo: str) -> None:
        """Let the pool drop connections that lead where the newest one does not."""
        connection.set_up(conninfo)
        if self.servers is not None:
            self.servers.look(connection)
        before, self._newest = self._newest, connection.server
        if before not in {"", connection.server}:
            self.pool.drain()

    def again(self, call: Callable[[], T]) -> T:
        """Call, and once more on sound connections when the first one was broken.

        An insert may then come back as the echo of our own commit; the log knows it.
        """
        try:
            return call()
        except (InterfaceError, OperationalError) as error:
            if not _is_lost(error):
                self._explain(error)
                raise
            if isinstance(error.__cause__, ServerSilent):
                self.pool.drain()  # To ask each other one would take as long again.
            else:
                self.pool.check()
            return call()

    def _explain(self, error: Exception) -> None:
        """Tell why there was no connection in time: if it is the server, the pool does not say."""
        if not isinstance(error.__cause__, PoolTimeout) or not self.refusals:
            return
        refused_at, refusal = self.refusals[-1]
        if time.monotonic() < refused_at + REFUSAL_S:
            error.__cause__ = refusal


def _noting(refusals: deque[tuple[float, psycopg.Error]]) -> type[Connection]:
    """Return connections of a pool that leave behind why the last one was not to be had."""

    class Noting(Connection):
        @classmethod
        def connect(cls, *args: Any, **options: Any) -> Self:
            try:
                return super().connect(*args, **options)
            except psycopg.Error as error:
                refusals.append((time.monotonic(), error))
                raise

    return Noting


class PostgresLogRecorder(PostgresApplicationRecorder):
    """Gives out positions under an exclusive advisory lock, so their order is that of commits.

    The lock, the notification and the rows are one statement: one round trip, where the library
    needs six. The lock is named after schema and table. Rows go as binary arrays instead of
    composite types, and without the library's ten retries.
    """

    datastore: Datastore

    def __init__(
        self, datastore: PostgresDatastore, *, events_table_name: str = "stored_events"
    ) -> None:
        super().__init__(datastore, events_table_name=events_table_name)
        plain = [each for each in self.sql_create_statements if _makes_table(each.as_string())]
        self.sql_create_statements = plain
        self._table = Identifier(self.datastore.schema, events_table_name)
        asking = Literal([get_topic(each) for each in ROUTES])
        insert = SQL(INSERT).format(table=self._table, asking=asking, work=Literal(WORK_CHANNEL))
        self._insert_statement = insert.as_bytes()
        self._begun_statement = SQL(BEGUN).format(table=self._table).as_bytes()
        self._reads: dict[frozenset[str], bytes] = {}
        self._lock_key = key_of(f"{self.datastore.schema}.{events_table_name}")
        self.datastore.servers = servers = Servers(self.datastore.schema, events_table_name)
        self.sql_create_statements.append(servers.create_statement)

    def insert_events(
        self, stored_events: Sequence[StoredEvent], servers: Collection[str] = (), **_: Any
    ) -> Sequence[int]:
        """Insert all or nothing; return the positions.

        `servers` are those that the events were decided on. Raises OtherLog where this is another
        one, on the second try too, or where it lacks the event before the first of a stream.
        """
        if not stored_events:
            return []
        try:
            return self.datastore.again(lambda: self._insert(stored_events, servers))
        except NothingInserted as refusal:
            if not isinstance(refusal.__cause__, psycopg.errors.ReadOnlySqlTransaction):
                raise
            self.datastore.pool.drain()  # The name may lead to one that takes writes by now.
            return self.datastore.again(lambda: self._insert(stored_events, servers))

    def _insert(
        self, stored_events: Sequence[StoredEvent], servers: Collection[str]
    ) -> Sequence[int]:
        parameters = self._parameters(stored_events)
        try:
            with self.datastore.get_connection() as connection:
                if connection.is_standby:  # Or was one: what it knew then may be no longer true.
                    raise psycopg.errors.ReadOnlySqlTransaction
                if any(server != connection.server for server in servers):
                    raise OtherLog
                found = connection.run_prepared(self._insert_statement, parameters)
        except (InternalError, OperationalError) as error:  # A standby is read only: internal.
            if getattr(error.__cause__, "sqlstate", None) in NOTHING_WRITTEN:
                raise NothingInserted(*error.args) from error.__cause__
            raise
        if not found.ntuples:
            raise OtherLog
        return [from_bigint(found.get_value(row, 0)) for row in range(found.ntuples)]

    def _parameters(self, stored_events: Sequence[StoredEvent]) -> list[bytes]:
        before = predecessors(stored_events)
        return [
            uuids(event.originator_id for event in stored_events),
            bigints(event.originator_version for event in stored_events),
            texts(event.topic for event in stored_events),
            byteas(event.state for event in stored_events),
            bigint(self._lock_key),
            self.channel_name.encode(),
            tell(with_news(stored_events)).encode(),
            uuids(before),
            bigints(before.values()),
        ]

    def select_events(self, *args: Any, **options: Any) -> Sequence[StoredEvent]:
        """Read a stream."""
        read = _without_retries(PostgresApplicationRecorder.select_events)
        return self.datastore.again(lambda: read(self, *args, **options))

    def select_notifications(self, *args: Any, **options: Any) -> Sequence[Notification]:
        """Read the log."""
        read = _without_retries(PostgresApplicationRecorder.select_notifications)
        return self.datastore.again(lambda: read(self, *args, **options))

    def select_rows(self, after: int, limit: int, unused: frozenset[str]) -> Sequence[LogRow]:
        """Read the log without the library's objects, which cost more than the rows."""
        if unused not in self._reads:
            topics = Literal(sorted(unused))
            statement = SQL(READ).format(table=self._table, unused=topics)
            self._reads[unused] = statement.as_bytes()
        return self.datastore.again(lambda: self._rows(self._reads[unused], after, limit))

    def _rows(self, statement: bytes, after: int, limit: int) -> Sequence[LogRow]:
        with (
            self.datastore.get_connection() as connection,
            connection.cursor(row_factory=tuple_row) as cursor,
        ):
            cursor.execute(statement, (after, limit), prepare=True)
            rows: Sequence[LogRow] = cursor.fetchall()
        return rows

    def select_begun(self, streams: Collection[UUID | str]) -> set[UUID]:
        """Return which of these streams have a first event."""
        return self.datastore.again(lambda: self._begun(streams))

    def _begun(self, streams: Collection[UUID | str]) -> set[UUID]:
        with self.datastore.get_connection() as connection:
            found = connection.run_prepared(self._begun_statement, [uuids(streams)])
        values = (found.get_value(row, 0) for row in range(found.ntuples))
        return {UUID(bytes=value) for value in values if value is not None}

    def max_notification_id(self) -> int | None:
        """Return the newest position."""
        read: Callable[..., int | None]
        read = _without_retries(PostgresApplicationRecorder.max_notification_id)
        return self.datastore.again(lambda: read(self))

    def last_position_up_to(self, position: int) -> int:
        """Return the newest position that is not beyond one; 0 for none."""
        statement = self.max_notification_id_statement + SQL(" WHERE notification_id <= %s")
        with self.datastore.get_connection() as connection:
            row = connection.execute(statement, [position]).fetchone()
        return (row and row["max"]) or 0

    def server(self) -> str:
        """Where the last call of this thread led: a server, and which of its lives."""
        return self.datastore.server


class Factory(PostgresFactory):
    """Opens the log at `LOG_CONNINFO`."""

    def __init__(self, env: Environment | EnvType | None) -> None:
        InfrastructureFactory.__init__(self, env)  # Ours has no settings by parts.
        self.datastore = Datastore(self.env["LOG_CONNINFO"])

    application_recorder_class = PostgresLogRecorder


def _makes_table(statement: str) -> bool:
    return statement.startswith(("CREATE TABLE", "CREATE UNIQUE INDEX"))


def _is_lost(error: Exception) -> bool:
    """Tell whether a connection broke; a server that said something else has said it."""
    cause = error.__cause__
    state = getattr(cause, "sqlstate", None)
    if isinstance(cause, psycopg.Error) and state is not None:
        return str(state).startswith(("08", "57P"))
    return not type(cause).__name__.startswith("PoolTimeout")


def _without_retries(method: Callable[..., T]) -> Callable[..., T]:
    """Return a method of the library without its decorator."""
    return getattr(method, "__wrapped__", method)
