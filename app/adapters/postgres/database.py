"""PostgreSQL: one database holds the log, the read models and the own stores."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier
from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from app.adapters.databases import Databases, LogEnd, end_of, find_gap, not_empty, not_whole
from app.adapters.postgres.connection import DURABLE, BoundedConnection, fault_of_sessions
from app.adapters.postgres.lock import IDLE_S_MAX, SessionLock, key_of
from app.adapters.postgres.server import ServerPin
from app.adapters.postgres.waker import CHANNEL, WORK_CHANNEL, PostgresWaker
from domain.errors import NotPossible
from domain.log.log import Stored
from domain.log.signal import Signal
from projections.engine.database import Database
from projections.engine.hot_reads import has_news
from projections.engine.trigrams import EXTENSIONS

# Connections of one process; opened when they are needed, and kept.
VIEWS_MAX = 5
KEYS_MAX = 2  # Few, because a process keeps the keys that it has read for a second.
POOL_WAIT_S = 3.0
MIGRATE = "migrate"
DUMP = "database.dump"
LAST_EVENT = (
    "SELECT notification_id, originator_id, originator_version, state FROM log_events "
    "ORDER BY notification_id DESC LIMIT 1"
)
# Other writers wait meanwhile, so that no event comes between the check and the copy.
LOCK_LOG = "LOCK TABLE log_events IN EXCLUSIVE MODE"
COLUMNS = "notification_id, originator_id, originator_version, topic, state"
FILL = f"COPY log_events ({COLUMNS}) FROM STDIN (FORMAT BINARY)"
TYPES = ("int8", "uuid", "int8", "text", "bytea")
MOVE_SEQUENCE = (
    "SELECT setval(pg_get_serial_sequence('log_events', 'notification_id'), max(notification_id)) "
    "FROM log_events HAVING max(notification_id) > 0"
)

# The service's role may only add and read events: another role owns the tables of the log. It owns
# all other tables, because a rebuild creates them again. It may update the sequence, because a
# promotion skips positions.
LOG_TABLES = ("log_events", "log_events_servers")
PROTECT = """
    GRANT USAGE, CREATE ON SCHEMA {schema} TO {role};
    REVOKE ALL ON log_events, log_events_servers FROM PUBLIC, {role};
    GRANT SELECT, INSERT ON log_events, log_events_servers TO {role};
    GRANT USAGE, SELECT, UPDATE ON SEQUENCE log_events_notification_id_seq TO {role};
"""
OTHER_TABLES = """
    SELECT relname FROM pg_class AS c WHERE relnamespace = to_regnamespace(current_schema())
    AND relkind IN ('r', 'v') AND relowner = current_user::regrole AND relname <> ALL(%s)
    AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
"""
# All tables are in the first schema of search_path. A database has one log, because channels and
# advisory locks are those of the whole database. The columns tell our tables from others' so named.
LOCATE = """
    WITH ours AS (
        SELECT relname, relnamespace::regnamespace::text AS schema FROM pg_class AS c
        JOIN pg_attribute ON attrelid = c.oid WHERE relkind = 'r' AND (relname, attname) IN
        (('log_events', 'originator_version'), ('follower_positions', 'stream_version')))
    SELECT current_setting('server_encoding'), quote_ident(current_schema()),
        ARRAY(SELECT schema FROM ours WHERE relname = 'log_events' ORDER BY schema),
        ARRAY(SELECT schema FROM ours WHERE relname <> 'log_events' ORDER BY schema)
"""
MAY_CHANGE = """
    SELECT has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE') OR pg_has_role(relowner, 'MEMBER')
    FROM pg_class WHERE oid = to_regclass('log_events')
"""

# No call may hang. TCP notices a server that vanished, the statement time-out a statement that is
# stuck, and `BoundedConnection` a server that is silent.
CALL_OPTIONS: Mapping[str, str | int] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}

# For sessions that lock rows (read models, own stores): the server must release the locks of a
# process that stands still or has vanished. Only readers of a whole table pause for long, and they
# lift the limit. Set after connecting, because a pooler refuses these settings in a URL.
SESSION = (
    "SET idle_in_transaction_session_timeout = '10s'; SET tcp_keepalives_idle = 5; "
    "SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; SET tcp_user_timeout = 15000"
)

# Per transaction, because a session's setting could reach other programs through a pooler.
BEGIN_DURABLE = f"BEGIN; SELECT {DURABLE}"
# None, or its name: the library sets the level by name once it has set another one.
ORDINARY = {None, psycopg.IsolationLevel.READ_COMMITTED}
BEGIN_RELAXED = "BEGIN; SET LOCAL synchronous_commit = off"
# The key in a connection's `info` for the statements with which its next transaction begins.
BEGIN = "begin"


class PostgresDatabase:
    """Where an installation on PostgreSQL keeps its data; `SqliteFiles` has the same methods."""

    error = psycopg.Error

    def __init__(self, url: str, role: str = "command", service_role: str = "") -> None:
        self.url = url
        self._role = role
        self._service_role = service_role  # A role of the database; "" for one that owns all.
        self._is_sound = self._has_pools = False
        self._checked = dict[str, BoundedConnection]()  # Not set up yet, by purpose.
        self._pin = ServerPin()

    @property
    def location(self) -> str:
        """Where the data is, for people to read; holds no secret."""
        parts = conninfo_to_dict(self.url)
        hosts = str(parts.get("host", "localhost")).split(",")
        ports = str(parts.get("port", "5432")).split(",")
        ports *= len(hosts) if len(ports) == 1 else 1
        addresses = (f"{host}:{port}" for host, port in zip(hosts, ports, strict=False))
        return f"{parts.get('dbname', '')} on {', '.join(addresses)}"

    def log_environment(self) -> dict[str, Any]:
        return {
            "PERSISTENCE_MODULE": "app.adapters.postgres.log:Factory",
            "LOG_CONNINFO": self._conninfo("log"),
            "LOG_PIN": self._pin,
        }

    def databases(self) -> Databases:
        """Return the databases. The views and the stores share connections.

        A crash may lose their newest commits, unless these are durable.
        """
        self._has_pools = True
        relaxed = engine_for(partial(self._open, "views"), VIEWS_MAX, BEGIN_RELAXED)
        shared = Database(relaxed, durable=_durable(relaxed))
        vaults = engine_for(partial(self._open, "keys"), KEYS_MAX)
        return Databases(shared, shared, Database(vaults))

    def _open(self, purpose: str) -> BoundedConnection:
        """Set up a connection of a pool, which must lead to the server of all others."""
        target = self._conninfo(purpose)
        checked = self._checked.pop(purpose, None)
        if checked is not None and has_news(checked):  # The server has ended it since.
            checked.close()
            checked = None
        connection = checked or BoundedConnection.connect(target, autocommit=True)
        try:
            connection.set_up(target, SESSION)
            self._pin.check(connection)  # Which a new role may only after `migrate`.
            if self._service_role:  # So that this role owns these tables, whichever role connects.
                connection.run(f"SET ROLE {Identifier(self._service_role).as_string()}")
        except BaseException:
            connection.close()
            raise
        connection.require = self._pin.require
        return connection

    def close(self) -> None:
        for each in self._checked.values():
            each.close()

    def read_only(self, _on_files: Sequence[str] = ()) -> Database:
        """Return the tables and views through sessions that can only read."""
        session = f"{SESSION}; SET default_transaction_read_only = on"
        opens = partial(BoundedConnection.open, self._conninfo("finance"), session)
        return Database(engine_for(opens, VIEWS_MAX))

    def waker(self, appended: Signal) -> PostgresWaker:
        """Return what hears of commits to the log by any process, once it is started."""
        channel = WORK_CHANNEL if self._role == "dispatcher" else CHANNEL
        return PostgresWaker(appended, self._conninfo("listen"), channel)

    def lock(self, name: str) -> SessionLock:
        """Return a lock that one process holds until it releases it or ends.

        That of operators nobody else may take while a command computes what it writes.
        """
        idle_s_max = 0 if name == "operators" else IDLE_S_MAX
        return SessionLock(self._conninfo(f"lock {name}"), key_of(name), idle_s_max)

    def exists(self) -> bool:
        """Return True: whether the server has our tables is found out by asking it."""
        return True

    has_all_files = exists

    def occupied(self) -> str | None:
        """Return None: `fill_log` and the server's own program find the tables."""
        return None

    def copy_to(self, _directory: Path) -> LogEnd:
        """Copy nothing; return the end of the log, which a dump that begins later includes."""
        with BoundedConnection.open(self._conninfo("backup")) as connection:
            row = connection.execute(LAST_EVENT).fetchone()
        return end_of(row)

    def dump_commands(self, directory: Path) -> list[str]:
        """Return `pg_dump` and `pg_restore` commands for this database, without password."""
        parts = {k: v for k, v in conninfo_to_dict(self.url).items() if k != "password"}
        database = shlex.quote(psycopg.conninfo.make_conninfo("", **parts))
        dump = shlex.quote(str(directory / DUMP))
        return [
            f"pg_dump --format=custom --file={dump} --dbname={database}",
            f"pg_restore --no-owner --single-transaction --dbname={database} {dump}",
        ]

    def topics(self, _directory: Path) -> list[str]:
        """Return none, because the log of a backup is in the server's own dump."""
        return []

    def put_back(self, _directory: Path) -> bool:
        """Put back nothing; tell whether the server has a log already."""
        with BoundedConnection.open(self._conninfo("backup")) as connection:
            row = connection.execute("SELECT to_regclass('log_events') IS NOT NULL").fetchone()
        return bool(row and row[0])

    def fill_log(self, rows: Iterable[Stored]) -> None:
        """Write a whole log, as `SqliteFiles` does."""
        with (
            BoundedConnection.open(self._conninfo("import"), statement_timeout_ms=0) as connection,
            connection.transaction(),
            connection.cursor() as cursor,
        ):
            cursor.execute(f"SELECT {DURABLE}; {LOCK_LOG}")
            if cursor.execute(LAST_EVENT).fetchone():
                raise not_empty(self.location)
            try:
                with cursor.copy(FILL) as copy:
                    copy.set_types(TYPES)
                    for row in rows:
                        copy.write_row(row)
            except psycopg.errors.UniqueViolation as error:
                raise not_whole() from error
            if (gap := cursor.execute(find_gap("log_events")).fetchone()) is not None:
                raise not_whole(gap[0])
            cursor.execute(MOVE_SEQUENCE)

    def fault(self) -> str | None:
        """Say what is wrong with sessions, encoding or schema; a success is not checked again.

        The pools begin with the two connections that have shown it, and set them up only then.
        """
        if self._is_sound:
            return None
        with ExitStack() as opened:
            views, keys = (
                opened.enter_context(BoundedConnection.connect(target, autocommit=True))
                for target in map(self._conninfo, ("views", "keys"))
            )
            if (fault := fault_of_sessions(views, keys)) is not None:
                return f"DATABASE_URL {fault}"
            if (fault := self._misfit(views)) is None and not self._has_pools:
                self._checked = {"views": views, "keys": keys}
                opened.pop_all()
        self._is_sound = fault is None
        return fault

    def _misfit(self, connection: BoundedConnection) -> str | None:
        """Say why this database, or the schema of this session, is not the place of our tables."""
        [(encoding, schema, logs, others)] = connection.execute(LOCATE).fetchall()
        if encoding != "UTF8":
            why = f"its encoding is {encoding}, which cannot hold every name: make one of UTF8"
        elif schema is None:
            why = "its search_path names no schema that exists"
        elif others and logs and not {*logs} & {*others}:
            tables = " and ".join(LOG_TABLES)
            why = (
                f"the log is in schema {logs[0]}, its other tables are in {others[0]}: bring them "
                f"together with ALTER TABLE … SET SCHEMA (of {tables}, or of all others)"
            )
        elif away := [each for each in logs if each != schema]:
            why = (
                f"schema {away[0]} holds a log already, and this search_path begins with {schema}: "
                f"begin it with {away[0]}, or use another database"
            )
        elif others and schema not in others:
            why = f"schema {others[0]} holds the tables of a log that is gone"
        else:
            return None
        return f"DATABASE_URL: {self.location}: {why}"

    @contextmanager
    def migrating(self) -> Iterator[None]:
        """Lock the database for a migration, so that two machines take turns."""
        with BoundedConnection.open(self._conninfo("migrate"), statement_timeout_ms=0) as alone:
            alone.execute("SELECT pg_advisory_lock(%s)", [key_of(MIGRATE)])
            if (fault := self._misfit(alone)) is not None:  # Another schema may have been first.
                raise NotPossible(fault)
            for name in EXTENSIONS:  # Without them a search scans, and `migrate` warns.
                with suppress(psycopg.Error):
                    alone.execute(SQL("CREATE EXTENSION IF NOT EXISTS {}").format(Identifier(name)))
            yield

    def protect_log(self) -> None:
        """Give the service's role, if there is one, everything but the log's tables."""
        if not self._service_role:
            return
        role = Identifier(self._service_role)
        with BoundedConnection.open(self._conninfo("migrate")) as owner:
            row = owner.execute("SELECT current_user, current_schema()").fetchone()
            if row is None or row[0] == self._service_role:
                message = "SERVICE_ROLE is the user of DATABASE_URL: let another role own the log"
                raise NotPossible(message)
            with owner.transaction():
                schema = Identifier(row[1])
                owner.execute(SQL(PROTECT).format(role=role, schema=schema))
                for (name,) in owner.execute(OTHER_TABLES, [[*LOG_TABLES]]).fetchall():
                    table = Identifier(row[1], name)
                    owner.execute(SQL("ALTER TABLE {} OWNER TO {}").format(table, role))

    def may_change_events(self) -> bool:
        """Tell whether the user of DATABASE_URL could change or remove events."""
        with BoundedConnection.open(self._conninfo("check")) as connection:
            row = connection.execute(MAY_CHANGE).fetchone()
        return bool(row and row[0])

    def _conninfo(self, purpose: str) -> str:
        """Return how to connect; the server shows each connection's process and purpose."""
        return conninfo(self.url, f"carrier-links {self._role}: {purpose}")


class FixedPool(QueuePool):
    """SQLAlchemy's pool, which also lends bare connections of the driver to hot reads.

    So ordinary and hot reads share the same few connections.
    """

    @contextmanager
    def lent(self) -> Iterator[BoundedConnection]:
        """Lend a connection in autocommit; it is dropped when the block raises."""
        record: Any = self._do_get()
        try:
            if record.dbapi_connection is not None and has_news(record.dbapi_connection):
                record.invalidate()
            driver: BoundedConnection = record.get_connection()
            driver.require()
            if not driver.autocommit:  # Nearly always the last user left it in autocommit.
                driver.autocommit = True
            yield driver
        except BaseException:
            record.invalidate()
            raise
        finally:
            self._do_return_conn(record)


def conninfo(url: str, application_name: str = "carrier-links") -> str:
    """Return a URL with our time-outs, name and encoding; other settings in the URL itself win.

    The encoding must not follow the database, a role or the environment. If the URL names several
    hosts, the library connects to the one that takes writes.
    """
    parts = conninfo_to_dict(url)
    several = {"target_session_attrs": "read-write"} if "," in str(parts.get("host", "")) else {}
    given = {**CALL_OPTIONS, "application_name": application_name, **several, **parts}
    return psycopg.conninfo.make_conninfo("", **{**given, "client_encoding": "UTF8"})


def engine_for(
    opens: Callable[[], BoundedConnection], connections_max: int, begin: str = BEGIN_DURABLE
) -> Engine:
    """Open a pool; of transactions with BEGIN_RELAXED a crash may lose the newest ones."""
    engine = create_engine(
        "postgresql+psycopg://",
        creator=opens,
        hide_parameters=True,  # Error texts end up in logs; parameters must not.
        use_native_hstore=False,  # We have none, and to look for it takes three round trips.
        poolclass=FixedPool,
        pool_size=connections_max,
        # Connections beyond the pool are closed after use, and each costs a new server process.
        max_overflow=0,
        pool_timeout=POOL_WAIT_S,
        pool_use_lifo=True,
    )
    engine.dialect.do_begin = partial(_begin_transaction, begin)  # type: ignore[method-assign]  # There is no event for it.
    event.listen(engine, "checkout", _check)
    event.listen(engine, "handle_error", _drop_read_only_connections)
    return engine


def _durable(engine: Engine) -> Engine:
    """Return the same connections for transactions whose commits wait for the disk."""
    durable = engine.execution_options()  # A copy with its own events but the same pool.

    @event.listens_for(durable, "begin")
    def mark(connection: Connection) -> None:  # The library would not translate an error in here.
        connection.connection.info[BEGIN] = BEGIN_DURABLE

    return durable


def _begin_transaction(statements: str, lent: PoolProxiedConnection) -> None:
    """Begin a transaction and make its settings, in one round trip with what comes first in it."""
    connection = lent.driver_connection
    assert isinstance(connection, BoundedConnection)
    statements = lent.info.pop(BEGIN, statements)
    # Any other kind of transaction only reads.
    if not connection.autocommit and connection.isolation_level in ORDINARY:
        for statement in statements.split("; "):
            connection.write(statement, ())


def _check(connection: BoundedConnection, _record: object, _proxy: object) -> None:
    """Check a connection before it is lent; let the pool replace it if the server has ended it.

    So a restart of the server causes no errors. If the connection ends later, the statement fails.
    """
    if has_news(connection):
        raise DisconnectionError
    connection.require()
    if connection.autocommit:  # The last user was a hot read.
        connection.autocommit = False


def _drop_read_only_connections(context: ExceptionContext) -> None:
    """Make the pool drop all connections to a server that has become read-only.

    New connections may lead to the server that takes writes now.
    """
    if isinstance(context.original_exception, psycopg.errors.ReadOnlySqlTransaction):
        context.is_disconnect = True
