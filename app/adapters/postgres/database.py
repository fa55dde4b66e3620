"""PostgreSQL: one database holds the log, the read models and the own stores."""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import PoolProxiedConnection

from app.adapters.databases import LogEnd
from app.adapters.postgres.connection import DURABLE, BoundedConnection
from app.adapters.postgres.lock import SessionLock, key_of
from app.adapters.postgres.pool import FixedPool
from app.adapters.postgres.sessions import fault_of_sessions
from app.adapters.postgres.turns import PostgresTurns
from app.adapters.postgres.waker import CHANNEL, WORK_CHANNEL, PostgresWaker
from domain.log.signal import Signal
from projections.engine.database import Database
from projections.engine.hot_reads import has_news

# Connections of one process; they are opened as they are wanted, and kept.
VIEWS_MAX = 5
KEYS_MAX = 2  # A process remembers the keys that it has read.
POOL_WAIT_S = 3.0
MIGRATE = "migrate"
DUMP = "database.dump"
LAST_EVENT = (
    "SELECT notification_id, originator_id, originator_version, state FROM log_events "
    "ORDER BY notification_id DESC LIMIT 1"
)

# No call may hang: a server that is gone without a word is noticed by TCP, one that is stuck by
# the time-out of its statements, and one that is silent by `BoundedConnection`.
CALL_OPTIONS: Mapping[str, str | int] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}

# Of sessions that hold rows (read models, own stores): the server must not keep them for a process
# that stands still or is gone without a word. Nobody pauses so long within a transaction, but who
# reads one state throughout. Set after connecting, for a pooler refuses them before; a URL that
# says otherwise is not followed.
SESSION = (
    "SET idle_in_transaction_session_timeout = '10s'; SET tcp_keepalives_idle = 5; "
    "SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; SET tcp_user_timeout = 15000"
)

# By transaction, never by session: what outlives it may reach another session through a pooler.
BEGIN_DURABLE = f"BEGIN; SELECT {DURABLE}"
ORDINARY = {None, psycopg.IsolationLevel.READ_COMMITTED}  # The library names it after others.
BEGIN_RELAXED = "BEGIN; SET LOCAL synchronous_commit = off"
BEGIN = "begin"  # By this name a connection carries what its next transaction begins with.


class PostgresDatabase:
    """Where an installation on PostgreSQL keeps things."""

    error: type[Exception] = psycopg.Error

    def __init__(self, url: str, role: str = "command") -> None:
        self.url = url
        self._role = role
        self._keeps_sessions = False

    @property
    def place(self) -> str:
        """Name the database to people, without a password."""
        parts = conninfo_to_dict(self.url)
        hosts = str(parts.get("host", "localhost")).split(",")
        ports = str(parts.get("port", "5432")).split(",")
        ports *= len(hosts) if len(ports) == 1 else 1
        places = (f"{host}:{port}" for host, port in zip(hosts, ports, strict=False))
        return f"{parts.get('dbname', '')} on {', '.join(places)}"

    def log_environment(self) -> dict[str, str]:
        """Return the settings of the event log's library."""
        return {
            "PERSISTENCE_MODULE": "app.adapters.postgres.log:Factory",
            "LOG_CONNINFO": self._conninfo("log"),
        }

    def databases(self) -> tuple[Database, Database, Database]:
        """Return the read models, the own stores, and the keys, which are as durable as the log.

        The first two share connections, and lose their newest commits unless they are durable ones.
        """
        relaxed = engine_for(self._conninfo("views"), VIEWS_MAX, synchronous_commit=False)
        shared = Database(relaxed, durable=_made_durable(relaxed))
        keys = Database(engine_for(self._conninfo("keys"), KEYS_MAX, synchronous_commit=True))
        return shared, shared, keys

    def waker(self, appended: Signal) -> PostgresWaker:
        """Return what hears of commits to the log, in whatever process."""
        channel = WORK_CHANNEL if self._role == "dispatcher" else CHANNEL
        return PostgresWaker(appended, self._conninfo("listen"), channel)

    def lock(self, name: str) -> SessionLock:
        """Return a lock that one process holds, until it lets go or is gone."""
        return SessionLock(self._conninfo(f"lock {name}"), key_of(name))

    def turns(self) -> PostgresTurns:
        """Return what a process takes turns by, at wallets that others move too."""
        return PostgresTurns(self._conninfo("turns"))

    def exists(self) -> bool:
        """Tell whether there can be tables; a server that does not answer raises."""
        return True

    def copy_to(self, directory: Path) -> LogEnd:  # noqa: ARG002  # Of the protocol.
        """Copy nothing; return where the log ends: a dump that begins now goes at least so far."""
        with BoundedConnection.open(self._conninfo("backup")) as connection:
            row = connection.execute(LAST_EVENT).fetchone()
        if row is None:
            return LogEnd(0, "", 0, "")
        return LogEnd(row[0], str(row[1]), row[2], sha256(row[3]).hexdigest())

    def dump_commands(self, directory: Path) -> list[str]:
        """Return `pg_dump` and `pg_restore` for this database, without its password."""
        parts = {k: v for k, v in conninfo_to_dict(self.url).items() if k != "password"}
        database = shlex.quote(psycopg.conninfo.make_conninfo("", **parts))
        dump = shlex.quote(str(directory / DUMP))
        return [
            f"pg_dump --format=custom --file={dump} --dbname={database}",
            f"pg_restore --no-owner --single-transaction --dbname={database} {dump}",
        ]

    def topics(self, directory: Path) -> list[str]:  # noqa: ARG002  # Of the protocol.
        """Return none: a dump is not looked into."""
        return []

    def occupied(self) -> str | None:
        """Name nothing: the server's own program has restored the database before."""
        return None

    def put_back(self, directory: Path) -> bool:  # noqa: ARG002  # Of the protocol.
        """Tell whether the database has a log."""
        with BoundedConnection.open(self._conninfo("backup")) as connection:
            row = connection.execute("SELECT to_regclass('log_events') IS NOT NULL").fetchone()
        return bool(row and row[0])

    def fault(self) -> str | None:
        """Say what a pooler in the wrong mode makes of sessions; asked until it is right."""
        if not self._keeps_sessions:
            fault = fault_of_sessions(self._conninfo("check"))
            if fault is not None:
                return f"DATABASE_URL {fault}"
            self._keeps_sessions = True
        return None

    @contextmanager
    def migrating(self) -> Iterator[None]:
        """Hold the database for a migration, so that two machines take turns."""
        with BoundedConnection.open(self._conninfo("migrate"), statement_timeout_ms=0) as alone:
            alone.execute("SELECT pg_advisory_lock(%s)", [key_of(MIGRATE)])
            yield

    def _conninfo(self, purpose: str) -> str:
        """Return how to connect; the server's views show for which process, and for what."""
        return conninfo(self.url, f"carrier-links {self._role}: {purpose}")


def conninfo(url: str, application_name: str = "carrier-links") -> str:
    """Return a URL with our time-outs and our name; what the URL itself says stands.

    Of several hosts the one that takes writes is meant.
    """
    parts = conninfo_to_dict(url)
    several = {"target_session_attrs": "read-write"} if "," in str(parts.get("host", "")) else {}
    given = {**CALL_OPTIONS, "application_name": application_name, **several, **parts}
    return psycopg.conninfo.make_conninfo("", **given)


def engine_for(target: str, connections_max: int, *, synchronous_commit: bool) -> Engine:
    """Open a pool. Without `synchronous_commit` a crash may lose the newest commits."""
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: BoundedConnection.open(target, SESSION, autocommit=False),
        hide_parameters=True,  # An error text ends in a log; what was written must not.
        poolclass=FixedPool,
        pool_size=connections_max,
        max_overflow=0,  # One that is closed after its use costs a process of the server each time.
        pool_timeout=POOL_WAIT_S,
        pool_use_lifo=True,
    )
    begin = BEGIN_DURABLE if synchronous_commit else BEGIN_RELAXED
    engine.dialect.do_begin = partial(_begin, begin)  # type: ignore[method-assign]  # It has no event.
    event.listen(engine, "checkout", _check)
    event.listen(engine, "handle_error", _leave_what_takes_no_writes)
    return engine


def _made_durable(engine: Engine) -> Engine:
    """Return the same connections for transactions whose commits wait for the disk."""
    durable = engine.execution_options()  # An engine of its own events; the pool is the same.

    @event.listens_for(durable, "begin")
    def tell(connection: Connection) -> None:  # What fails here the library would not translate.
        connection.connection.info[BEGIN] = BEGIN_DURABLE

    return durable


def _begin(statements: str, lent: PoolProxiedConnection) -> None:
    """Begin a transaction with its own setting, in the round trip that its BEGIN costs anyway."""
    connection = lent.driver_connection
    assert isinstance(connection, BoundedConnection)
    statements = lent.info.pop(BEGIN, statements)
    if not connection.autocommit and connection.isolation_level in ORDINARY:  # Else it only reads.
        connection.run(statements)


def _check(connection: psycopg.Connection, _record: object, _proxy: object) -> None:
    """Lend a connection as it was opened; let the pool replace one that the server has ended.

    So a restart of the server costs nobody an error; what happens later is told by the statement.
    """
    if has_news(connection):
        raise DisconnectionError
    if connection.autocommit:  # A hot read was the last one to have it.
        connection.autocommit = False


def _leave_what_takes_no_writes(context: ExceptionContext) -> None:
    """Let the pool drop all connections to a server that has become read only.

    The name may lead to the one that takes writes by now.
    """
    if isinstance(context.original_exception, psycopg.errors.ReadOnlySqlTransaction):
        context.is_disconnect = True
