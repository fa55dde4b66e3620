"""A connection to PostgreSQL on which no call hangs; a check for poolers that share sessions."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, TypeVar

import psycopg
from eventsourcing.persistence import OperationalError
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import _WaitTimeout, error_from_result  # The first has no public name.
from psycopg.pq import ExecStatus, Format
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
LOOK = f"SELECT current_setting('{NAME}', true), pg_backend_pid()"
# An irregular order: a pooler that uses its sessions in turn would pass a check in regular order.
ORDER = (0, 1, 1, 0, 0, 0, 1)

R = TypeVar("R")


class ServerSilent(psycopg.OperationalError):
    """Raised when a server, or a proxy before it, accepts a call and does not answer.

    Its kernel may still answer, so neither keepalives nor the server's own time-outs notice it. The
    connection is closed; the statement may or may not have run.
    """


def _nothing() -> None:
    """Require nothing."""


class BoundedConnection(psycopg.Connection[Any]):
    """Waits at most `answer_s` for each answer; None means without a limit.

    A pool calls `require` before it lends the connection; it raises once another server answers.
    """

    require: Callable[[], None] = staticmethod(_nothing)
    answer_s: float | None = FIRST_ANSWER_S
    # The name of each prepared statement, by its text.
    _statements: Mapping[bytes, bytes] = MappingProxyType({})

    @classmethod
    def open(
        cls,
        conninfo: str,
        session: str = "",
        *,
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
        autocommit: bool = True,
    ) -> Self:
        """Connect and set up the session; `session` is one or more statements."""
        connection = cls.connect(conninfo, autocommit=autocommit)
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
        is_told = "statement_timeout" in str(conninfo_to_dict(conninfo).get("options") or "")
        limit = "" if is_told else f"SET statement_timeout = {statement_timeout_ms}"
        limit_in_force = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"
        found = self.run(f"{PLAIN}; {session}; {limit}; {limit_in_force}")
        limit_ms = int(found.get_value(0, 0) or b"0")
        self.answer_s = limit_ms / 1_000 + SPARE_S if limit_ms else None

    def run(self, statements: str) -> PGresult:
        """Run our own statements in one round trip; return the result of the last one."""
        self.pgconn.send_query(statements.encode())
        return _sound(self.wait(generators.execute(self.pgconn)))

    def run_prepared(self, statement: bytes, parameters: Sequence[bytes]) -> PGresult:
        """Run our own statement with binary values; prepare it on its first use in a session.

        A cursor would look for the type of each value of an array, which costs twice the round
        trip.
        """
        return self._run_prepared(statement, parameters, [Format.BINARY] * len(parameters))

    def write(self, statement: str, values: Sequence[Any]) -> int:
        """Run our own statement as `run_prepared` does; return how many rows it has written.

        It says itself of which types its values are: texts, numbers, ids or bytes.
        """
        formats = [Format.BINARY if isinstance(each, bytes) else Format.TEXT for each in values]
        found = self._run_prepared(statement.encode(), [*map(_as_text, values)], formats)
        return found.command_tuples or 0

    def _run_prepared(
        self, statement: bytes, parameters: Sequence[bytes | None], formats: Sequence[Format]
    ) -> PGresult:
        name = self._statements.get(statement)
        if name is None:
            name = b"ours_%d" % len(self._statements)
            self.pgconn.send_prepare(name, statement)
            _sound(self.wait(generators.execute(self.pgconn)))
            self._statements = {**self._statements, statement: name}
        self.pgconn.send_query_prepared(name, parameters, formats, Format.BINARY)
        return _sound(self.wait(generators.execute(self.pgconn)))

    def _deallocate(self, name: bytes | None) -> PQGen[None]:
        """Drop a statement that the driver has prepared, or all, and then ours are gone too."""
        if name is None:
            self._statements = MappingProxyType({})
        return super()._deallocate(name)

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        """Wait as the library does, but with a limit."""
        if timeout is not None or self.answer_s is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.answer_s)
        except _WaitTimeout:
            self.pgconn.finish()
            message = f"the server has not answered within {self.answer_s:.0f} s"
            raise ServerSilent(message) from None


def _as_text(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def _sound(results: Sequence[PGresult]) -> PGresult:
    """Return the last result; raise the error if any statement has failed."""
    for each in results:
        if each.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(each)
    return results[-1]


def fault_of_sessions(conninfo: str) -> str | None:
    """Say what is wrong if a pooler shares sessions; None if each connection has its own session.

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
