"""A connection to PostgreSQL on which no call hangs, and what each session is told of itself."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, TypeVar

import psycopg
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import _WaitTimeout, error_from_result  # The first has no public name.
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

STATEMENT_TIMEOUT_MS = 30_000
# Without statistics (after a restore) a large table makes short statements look worth compiling.
PLAIN = "SET jit = off"
FIRST_ANSWER_S = 5.0  # For a session's settings; a pooler has connected before it has a server.
SPARE_S = 5.0  # The server tells of a statement's time-out by itself, if it still can.

# Of a transaction whose commit must last: whatever its session was told, and by whom. Who asks for
# more, that stand-bys have applied it, gets it.
DURABLE = (
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
    " WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"
)

R = TypeVar("R")


class ServerSilent(psycopg.OperationalError):
    """Raised for a server, or something on the way to it, that takes a call and says nothing.

    Its kernel may well be alive: neither keepalives nor time-outs of the server notice it. The
    connection is closed; whether the statement has run is unknown.
    """


class BoundedConnection(psycopg.Connection[Any]):
    """Waits for each answer at most so long; None: as long as it takes."""

    answer_s: float | None = FIRST_ANSWER_S
    _statements: Mapping[bytes, bytes] = MappingProxyType({})  # The name of each statement.

    @classmethod
    def open(
        cls,
        conninfo: str,
        session: str = "",
        *,
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
        autocommit: bool = True,
    ) -> Self:
        """Connect, and give the session its settings: `session` is one or more statements."""
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
        """Set what a pooler would refuse or drop at connecting; a URL's own time-out stands."""
        is_told = "statement_timeout" in str(conninfo_to_dict(conninfo).get("options") or "")
        limit = "" if is_told else f"SET statement_timeout = {statement_timeout_ms}"
        limit_in_force = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"
        found = self.run(f"{PLAIN}; {session}; {limit}; {limit_in_force}")
        limit_ms = int(found.get_value(0, 0) or b"0")
        self.answer_s = limit_ms / 1_000 + SPARE_S if limit_ms else None

    def run(self, statements: str) -> PGresult:
        """Run statements of ours in one round trip; return the result of the last one."""
        self.pgconn.send_query(statements.encode())
        return _sound(self.wait(generators.execute(self.pgconn)))

    def run_prepared(self, statement: bytes, parameters: Sequence[bytes]) -> PGresult:
        """Run a statement of ours, prepared when this session sees it first; all is binary.

        A cursor finds a type for each value of an array: twice the work of the whole round trip.
        """
        name = self._statements.get(statement)
        if name is None:
            name = b"ours_%d" % len(self._statements)
            self.pgconn.send_prepare(name, statement)
            _sound(self.wait(generators.execute(self.pgconn)))
            self._statements = {**self._statements, statement: name}
        self.pgconn.send_query_prepared(name, parameters, [Format.BINARY] * len(parameters), 1)
        return _sound(self.wait(generators.execute(self.pgconn)))

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        """Wait as the library does, but not for ever."""
        if timeout is not None or self.answer_s is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.answer_s)
        except _WaitTimeout:
            self.pgconn.finish()
            message = f"the server has not answered within {self.answer_s:.0f} s"
            raise ServerSilent(message) from None


def _sound(results: Sequence[PGresult]) -> PGresult:
    """Return the last result; raise what the server has refused."""
    for each in results:
        if each.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(each)
    return results[-1]
