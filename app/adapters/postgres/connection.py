"""A connection to PostgreSQL on which no call hangs; a check for poolers that share sessions."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self, TypeVar

import psycopg
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import _WaitTimeout, error_from_result  # The first has no public name.
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

STATEMENT_TIMEOUT_MS = 30_000
# Without statistics, as after a restore, PostgreSQL would compile short statements on large tables.
PLAIN = "SET jit = off"
# For the first answer; a pooler accepts a connection before it has a server for it.
FIRST_ANSWER_S = 5.0
# We wait this much longer than the statement's time-out, which a sound server reports itself.
SPARE_S = 5.0

# For a transaction whose commit must be durable, whatever the setting of its session. The stronger
# setting `remote_apply`, which waits for stand-bys, stays.
DURABLE = (
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
    " WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"
)

SHARED = (
    "leads to a pooler that gives each transaction another session; session locks, LISTEN and"
    " prepared statements need their own: use pool_mode = session, or connect directly"
)
NO_ROOM = (
    "leads to a pooler that had no second session to give within {seconds:.0f} s:"
    " its pool is full or too small"
)
NAME = "carrier_links.session"  # A setting without meaning for the server, so it does no harm.
MARK = f"SELECT set_config('{NAME}', %s, false), pg_backend_pid()"
QUERY = f"SELECT current_setting('{NAME}', true), pg_backend_pid()"
# An irregular order: a pooler that uses its sessions in turn would pass a check in regular order.
ORDER = (0, 1, 1, 0, 0, 0, 1)

R = TypeVar("R")
Check = Callable[[int], object]  # Is told how many rows a statement wrote; `int` takes any number.


class ServerSilent(psycopg.OperationalError):
    """Raised when a server, or a proxy before it, accepts a call and does not answer.

    Its kernel may still answer, so neither keepalives nor the server's own time-outs notice it. The
    connection is closed; the statement may or may not have run.
    """


class BoundedConnection(psycopg.Connection[Any]):
    """Waits at most `answer_s` for each answer; None means without a limit.

    A pool calls `require` before it lends the connection; it raises once another server answers.
    """

    require: Callable[[], object] = int
    answer_s: float | None = FIRST_ANSWER_S
    is_standby = False  # Of the log: whether it leads to one.

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._statements: dict[bytes, bytes] = {}  # The names of prepared statements, by text.
        self._named = 0
        self._unsent: list[tuple[str, Sequence[Any], Check]] = []

    @classmethod
    def open(
        cls, conninfo: str, session: str = "", *, statement_timeout_ms: int = STATEMENT_TIMEOUT_MS
    ) -> Self:
        """Connect and set up the session; `session` is one or more statements."""
        connection = cls.connect(conninfo, autocommit=True)
        try:
            connection.set_up(conninfo, session, statement_timeout_ms)
        except BaseException:
            connection.close()
            raise
        return connection

    def set_up(
        self, conninfo: str, session: str = "", statement_timeout_ms: int = STATEMENT_TIMEOUT_MS
    ) -> None:
        """Make the settings that a pooler would refuse or drop in a URL; the URL's own win."""
        is_set = "statement_timeout" in str(conninfo_to_dict(conninfo).get("options") or "")
        limit = "" if is_set else f"SET statement_timeout = {statement_timeout_ms}"
        limit_in_force = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"
        found = self.run(f"{PLAIN}; {session}; {limit}; {limit_in_force}")
        limit_ms = int(found.get_value(0, 0) or b"0")
        self.answer_s = limit_ms / 1_000 + SPARE_S if limit_ms else None

    def run(self, statements: str) -> PGresult:
        """Run our own statements in one round trip; return the result of the last one."""
        self._flush()
        self.pgconn.send_query(statements.encode())
        return _sound(self.wait(generators.execute(self.pgconn)))

    def run_prepared(self, statement: bytes, parameters: Sequence[bytes]) -> PGresult:
        """Run our own statement with binary values; prepare it on its first use in a session.

        A cursor would look for the type of each value of an array, which costs twice the round
        trip.
        """
        self._flush()
        commands, name = self._prepare(statement)
        for command in commands:
            command()
            try:
                _sound(self._wait(generators.execute(self.pgconn)))
            except psycopg.Error:
                del self._statements[statement]
                raise
        self.pgconn.send_query_prepared(name, parameters, [Format.BINARY] * len(parameters), 1)
        return _sound(self._wait(generators.execute(self.pgconn)))

    def write(self, statement: str, values: Sequence[Any], check: Check = int) -> None:
        """Run our own statement in a transaction, with whatever comes next; it returns no rows.

        It says itself of which types its values are: texts, numbers, ids or bytes. So all that is
        written between two reads costs one round trip. `check` is told how many rows it wrote, and
        may raise; until then nothing is committed.
        """
        is_open = self._unsent or self.pgconn.transaction_status != TransactionStatus.IDLE
        assert is_open or statement.startswith("BEGIN"), statement
        self._unsent.append((statement, values, check))

    def commit(self) -> None:
        if self._unsent and all(check is int for _, _, check in self._unsent):
            self.write("COMMIT", ())
        self._flush()
        super().commit()

    def rollback(self) -> None:
        self._unsent.clear()
        super().rollback()

    def _flush(self) -> None:
        """Send what was written, in one round trip; raise the first error."""
        if not self._unsent:
            return
        commands, checks = deque[Callable[[], None]](), list[Check]()
        for statement, values, check in self._unsent:
            new, name = self._prepare(statement.encode())
            formats = [Format.BINARY if isinstance(each, bytes) else Format.TEXT for each in values]
            sent = [it if isinstance(it, bytes | None) else str(it).encode() for it in values]
            commands += [*new, partial(self.pgconn.send_query_prepared, name, sent, formats)]
            checks += [*[int] * len(new), check]
        self._unsent.clear()
        self.pgconn.enter_pipeline_mode()
        commands.append(self.pgconn.pipeline_sync)
        try:
            found = self._wait(generators.pipeline_communicate(self.pgconn, commands))
            while len(found) <= len(checks):  # The last one is that of `pipeline_sync`.
                found.append(self._wait(generators.fetch_many(self.pgconn)))
        finally:
            if self.pgconn.status == ConnStatus.OK:
                self.pgconn.exit_pipeline_mode()
        for results, check in zip(found, checks, strict=False):
            try:
                check(_sound(results).command_tuples or 0)
            except psycopg.Error:
                self._statements.clear()  # What came behind it was not prepared.
                raise

    def _prepare(self, statement: bytes) -> tuple[Sequence[Callable[[], None]], bytes]:
        """Return what prepares a statement, unless it is prepared, and its name."""
        name = self._statements.get(statement)
        if name is not None:
            return (), name
        self._named += 1
        name = self._statements[statement] = b"ours_%d" % self._named
        return (partial(self.pgconn.send_prepare, name, statement),), name

    def _deallocate(self, name: bytes | None) -> PQGen[None]:
        """Drop a statement that the driver has prepared, or all, and then ours are gone too."""
        if name is None:
            self._statements.clear()
        return super()._deallocate(name)

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        """Wait as the library does, but with a limit, and behind all that was written."""
        self._flush()
        return self._wait(gen, interval, timeout)

    def _wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        if timeout is not None or self.answer_s is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.answer_s)
        except _WaitTimeout:
            self.pgconn.finish()
            message = f"the server has not answered within {self.answer_s:.0f} s"
            raise ServerSilent(message) from None


def _sound(results: Sequence[PGresult]) -> PGresult:
    """Return the last result; raise the error if any statement has failed."""
    for each in results:
        if each.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(each)
    return results[-1]


def fault_of_sessions(first: BoundedConnection, second: BoundedConnection) -> str | None:
    """Say what is wrong if a pooler shares sessions; None if each connection has its own session.

    Sets nothing that could harm the next user of such a session.
    """
    is_first = first.execute(MARK, ["first"]).fetchone()
    try:
        is_second = second.execute(MARK, ["second"]).fetchone()
    except ServerSilent:
        return NO_ROOM.format(seconds=BoundedConnection.answer_s)
    known = ((first, is_first), (second, is_second))
    for each in ORDER:
        connection, was = known[each]
        if connection.execute(QUERY).fetchone() != was:
            return SHARED
    return None
