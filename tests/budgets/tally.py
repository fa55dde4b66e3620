"""What each database is asked, as its driver sends it: on PostgreSQL the bytes of the protocol.

libpq writes down every message of a connection. What the server has answered as complete is what
it counts itself, whoever has sent it, and however.
"""

import ctypes
import os
import re
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any, Literal, NamedTuple, cast

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from app.adapters.postgres.connection import DURABLE

Kind = Literal["statement", "commit", "neither"]

NETWORK = "network"  # The simulated one keeps its tables beside ours; a real one asks nothing here.
OWN_COMMIT = "its own commit"  # Of a statement outside of any transaction.
SETTING = f"SELECT {DURABLE}"  # Of a transaction, in the round trip of its BEGIN.
CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SET", "SAVEPOINT", "RELEASE", "END")
WRITES = re.compile(r"\b(INSERT INTO|UPDATE|DELETE FROM|COPY)\b", re.IGNORECASE)
MESSAGE = re.compile(r"([FB])\t\d+\t(\w+)\t?(.*)", re.DOTALL)
PARSE = re.compile(r' "([^"]*)" "(.*)" \d+', re.DOTALL)
BIND = re.compile(r' "[^"]*" "([^"]*)"')


# libpq flushes what it has written down when it sends. Without this the answers to the last message
# of a connection would be read with the next operation.
flush_all_streams = ctypes.CDLL(None).fflush


class Statement(NamedTuple):
    """What ran, and for whom."""

    role: str
    text: str
    kind: Kind
    failed: bool = False


class Session:
    """One connection: keeps who asks, and what its transaction has been about."""

    def __init__(self, tally: "Tally", role: str | None) -> None:
        self._tally, self._role = tally, role
        self._owner: str | None = None  # Of the transaction that is open.
        self._is_open = False

    def ran(self, text: str, *, opening: bool = False, failed: bool = False) -> None:
        """Take down a statement; `opening`: it came in the round trip of a BEGIN."""
        if failed:
            self._tally.entries.append(Statement(self._owner_of(text), text, "statement", failed))
            return
        word = text.lstrip().split(maxsplit=1)[0].rstrip(";").upper()
        role = self._owner_of(text)
        if word in {"COMMIT", "END"}:
            self._note(self._owner or role, text, "commit")
            self._is_open, self._owner = False, None
            return
        if word == "BEGIN":
            self._is_open, self._owner = True, None
        elif word == "ROLLBACK":
            self._is_open, self._owner = False, None
        if word in CONTROL or opening or text == SETTING:
            self._note(role, text, "neither")
            return
        if self._is_open:
            self._owner = role
        self._note(role, text, "statement")
        if not self._is_open and WRITES.search(text):
            self._note(role, OWN_COMMIT, "commit")

    def _owner_of(self, text: str) -> str:
        if "simulated_" in text:
            return NETWORK
        return self._role or self._tally.playing

    def _note(self, role: str, text: str, kind: Kind) -> None:
        self._tally.entries.append(Statement(role, text, kind))


class Tally:
    """Every statement since the last look, of all connections that were opened under it."""

    def __init__(self) -> None:
        self.entries: list[Statement] = []
        self.playing = "web"  # Whose turn it is, where one process plays all roles.
        self._traces: list[Trace] = []

    def take(self) -> Sequence[Statement]:
        """Return what has run since the last call."""
        flush_all_streams(None)
        for trace in [*self._traces]:
            trace.read()
        taken, self.entries = self.entries, []
        return taken

    def close(self) -> None:
        """Drop what was recorded."""
        self._traces.clear()

    def trace(self, connection: psycopg.Connection[Any], conninfo: str) -> None:
        """Listen to a connection, whose name tells the role; one that only listens asks nothing."""
        name = str(conninfo_to_dict(conninfo).get("application_name", ""))
        role, _, purpose = name.removeprefix("carrier-links ").partition(": ")
        if purpose != "listen" and name != "bystander":
            self._traces.append(Trace(connection, Session(self, role)))


class Trace:
    """What libpq has written of one connection."""

    def __init__(self, connection: psycopg.Connection[Any], session: Session) -> None:
        self._file, self._at = TemporaryFile(), 0  # noqa: SIM115  # `__del__` closes it.
        self._session = session
        self._prepared: dict[str, str] = {}
        self._bound = ""
        self._sent = deque[tuple[str, bool]]()
        connection.pgconn.trace(os.dup(self._file.fileno()))
        connection.pgconn.set_trace_flags(psycopg.pq.Trace.SUPPRESS_TIMESTAMPS)

    def read(self) -> None:
        """Read on from where the last reading has ended."""
        data = os.pread(self._file.fileno(), os.fstat(self._file.fileno()).st_size, self._at)
        self._at += len(data)
        for message in re.split(r"\n(?=[FB]\t\d+\t)", data.decode(errors="replace")):
            if found := MESSAGE.match(message):
                self._take(found[2], found[3].rstrip("\n"))

    def __del__(self) -> None:
        """Stop listening, also to a connection that was opened while the others were closed."""
        self._file.close()

    def _take(self, kind: str, rest: str) -> None:
        if kind == "Query":
            parts = [each.strip() for each in rest.strip()[1:-1].split(";") if each.strip()]
            opens = parts[0].upper().startswith("BEGIN")
            self._sent.extend((part, opens and part is not parts[0]) for part in parts)
        elif kind == "Parse" and (parsed := PARSE.match(rest)):
            self._prepared[parsed[1]] = parsed[2]
        elif kind == "Bind" and (bound := BIND.match(rest)):
            self._bound = self._prepared[bound[1]]
        elif kind == "Execute":
            self._sent.append((self._bound, False))
        elif kind in {"CommandComplete", "ErrorResponse"} and self._sent:
            text, opening = self._sent.popleft()
            self._session.ran(text, opening=opening, failed=kind == "ErrorResponse")
        elif kind == "ReadyForQuery":
            self._sent.clear()  # What came after an error was not run.


def _counting(tally: Tally) -> type[sqlite3.Connection]:
    """Return connections to SQLite that say what they run; many rows at once are one statement."""

    class CountingCursor(sqlite3.Cursor):
        def executemany(self, statement: str, rows: Any, /) -> sqlite3.Cursor:
            connection = self.connection
            assert isinstance(connection, Counting)
            with connection.counted_once(statement):
                return super().executemany(statement, rows)

    class Counting(sqlite3.Connection):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.session = Session(tally, None)
            self.set_trace_callback(self.session.ran)

        def executemany(self, statement: str, rows: Any, /) -> sqlite3.Cursor:
            return cast("sqlite3.Cursor", self.cursor().executemany(statement, rows))

        def cursor(self, factory: Any = CountingCursor) -> Any:
            return super().cursor(factory)

        @contextmanager
        def counted_once(self, statement: str) -> Iterator[None]:
            self.set_trace_callback(None)
            self.session.ran(statement)
            yield
            self.set_trace_callback(self.session.ran)

    return Counting


@pytest.fixture
def tally(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tally]:
    """Count on every connection that is opened from now on."""
    made = Tally()
    opened: Callable[..., Any] = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]  # Of a class method.

    def connect(cls: Any, conninfo: str = "", **options: Any) -> Any:
        connection = opened(cls, conninfo, **options)
        made.trace(connection, conninfo)
        return connection

    monkeypatch.setattr(psycopg.Connection, "connect", classmethod(connect))
    sqlite, counting = sqlite3.connect, _counting(made)

    def open_file(*args: Any, **options: Any) -> Any:
        if args[:1] == ("",):  # The memory of an audit, whose service an earlier test has ended.
            return sqlite(*args, **options)
        return sqlite(*args, **{**options, "factory": counting})

    monkeypatch.setattr(sqlite3, "connect", open_file)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", open_file)
    yield made
    made.close()


def told(statements: Sequence[Statement]) -> str:
    """List the statements that ran, to explain a number."""
    lines = []
    for each in statements:
        if each.kind != "neither":
            text = " ".join(each.text.split())
            lines.append(f"{each.role:>10}  {each.kind:9}  {text[:200]}")
    return "\n".join(lines)
