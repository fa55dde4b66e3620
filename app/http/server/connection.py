"""One client of the server: what it sends becomes exchanges, strictly and within bounds.

A request goes on to the gateway only when it has come whole, so a slow client costs a few kilobytes
but never a thread.
"""

import asyncio
import re
import resource
import time
from asyncio import Event, Future, Task, TimerHandle, Transport
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from io import BytesIO
from typing import Any, NamedTuple, cast
from urllib.parse import unquote_to_bytes

import httptools

from app.http.edge import problems
from app.http.edge.input import BODY_BYTES_MAX
from app.security.tokens import Claims
from app.settings import HTTP_THREADS
from domain.errors import Refused
from domain.limiter import Owner

# Also of what stands between two parts of a chunked body, and of later requests while one is being
# answered; then TCP waits.
HEAD_BYTES_MAX = 64 * 1024
HEADERS_MAX = 100
NAME_BYTES_MAX = 100  # More than any that is read has; what is cached must not be larger.
# Bytes of all connections together: twice what the threads can take.
HELD_BYTES_MAX = 2 * HTTP_THREADS * BODY_BYTES_MAX
RECOUNT_BYTES = 16 * 1024 * 1024  # After this many new bytes the bytes held are added up.
CONNECTIONS_MAX = 4096
FILES = 2 * CONNECTIONS_MAX  # Half of all open files are left to the rest of the process.
WRITE_S = 30.0  # A client that takes nothing of its reply for so long has gone.
# Closing with unread input resets the connection; first the client gets time to read its reply.
LINGER_S = 2.0
SOON_S = 1.0  # The time left to requests that have yet to come in whole when the process stops.

# Method, target and, if it is whole, version.
_line_of = re.compile(rb"([A-Z-]{1,32}) ([^ \r\n]+)(?: HTTP/(1\.[01])\r\n)?").match
_end_of_head = re.compile(rb"\n\r?\n").search  # The parser refuses bare line feeds.
# Offers of another protocol are not heard, so that a body is read as usual.
_no_upgrade = re.compile(rb"\nupgrade:", re.IGNORECASE).sub
# RFC 9112 §3.2: a name or an address, perhaps with a port.
_HOST = rb"(?:(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?"
_is_host = re.compile(_HOST.decode(), re.ASCII).fullmatch
# Path and query of a target, which may also name a server.
_target_of = re.compile(
    rb"(?:[Hh][Tt]{2}[Pp][Ss]?://%s|(?=/))(/[^?#]*)?(?:\?([^#]*))?" % _HOST, re.ASCII
).fullmatch

Environ = dict[str, Any]  # Of a request, as WSGI has it (PEP 3333), without its body.


class Reply(NamedTuple):
    """A whole reply.

    Before it is sent, `later` may be waited for, `wait_s` at most, without a thread: `subscribe`
    has its argument called when another answer is due, in any thread (False: do not wait), and
    `unsubscribe` says whether the request is answered anew (webhooks/events.py has one).
    """

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    later: Any = None


def in_json(status: int, body: bytes, headers: Iterable[tuple[str, str]]) -> Reply:
    """Return a reply in JSON with more headers than those of its body."""
    own = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    return Reply(status, [*own, *headers], body)


class ClientGone(OSError):
    """Raised when nobody takes a reply any more."""


class _NoRequest(Exception):
    """Raised, with the problem, where what arrives is no request."""


class Request:
    """A request as it arrives, read by llhttp without its leniencies."""

    def __init__(self) -> None:
        self.method, self.target, self.version = "-", b"", "1.1"
        self.fields: dict[str, str] = {}  # The head; of one that comes twice, both values.
        self.body = bytearray()
        self.left = 0  # Bytes of the body that are still to come; below 0 in chunks.
        self.is_whole = self.keeps = False
        self._in_body = False
        self._quiet = 0  # Bytes since a part of the body came.
        self.parser: Any = httptools.HttpRequestParser(self)

    def read_head(self, head: bytes) -> None:
        """Read a whole head."""
        # The parser lets several spaces pass, and other protocols, such as RTSP/1.0.
        if not (line := _line_of(head)) or not line[3]:
            raise _NoRequest(problems.BROKEN_HEAD)
        self.method, self.target, self.version = line[1].decode(), line[2], line[3].decode()
        if head.count(b"\n") > HEADERS_MAX + 2:  # The first line and the last, which is empty.
            raise _NoRequest(problems.HEAD_TOO_LARGE)
        if self.method == "CONNECT":
            raise _NoRequest(problems.NOT_IMPLEMENTED)
        is_read = False
        try:
            self.parser.feed_data(_no_upgrade(b"\nx-upgrade:", head))
            is_read = self._in_body  # Else the parser sees the end of the head elsewhere.
        except httptools.HttpParserInvalidMethodError:
            raise _NoRequest(problems.NOT_IMPLEMENTED) from None
        except httptools.HttpParserError:
            pass
        problem = self._problem_of_head() if self._in_body else None
        if problem is not None or not is_read:
            raise _NoRequest(problem or problems.BROKEN_HEAD)

    def read_body(self, part: bytes) -> None:
        """Read a part of the body. What comes behind it with its last chunk is lost."""
        self._quiet += len(part)
        is_broken = False
        try:
            self.parser.feed_data(part)
        except httptools.HttpParserError:
            is_broken = not self.is_whole
        if len(self.body) > BODY_BYTES_MAX:
            raise _NoRequest(problems.TOO_LARGE)
        if self._quiet > HEAD_BYTES_MAX:
            raise _NoRequest(problems.HEAD_TOO_LARGE)
        if is_broken:
            raise _NoRequest(problems.BROKEN_BODY)

    def environ(self, client: str) -> Environ:
        """Return it as WSGI has it."""
        if (found := _target_of(self.target)) is not None:
            path, query = found[1] or b"/", found[2] or b""
        else:  # It is that of a server, or refused.
            path, _, query = self.target.partition(b"?")
        return {
            "REQUEST_METHOD": self.method,
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query.decode("latin-1"),
            "REQUEST_URI": path.decode("latin-1"),
            "SERVER_PROTOCOL": f"HTTP/{self.version}",
            "REMOTE_ADDR": client,
            **self.fields,
            "CONTENT_LENGTH": str(len(self.body)) if self.body else "",
        }

    def _problem_of_head(self) -> Refused | None:
        """Say what is wrong with a head that the parser lets pass; None if nothing."""
        coding, host = self.fields.pop("HTTP_TRANSFER_ENCODING", None), self.fields.get("HTTP_HOST")
        self.left = int(self.fields.get("CONTENT_LENGTH", "0")[-20:])  # Python bounds its digits.
        if self.left > BODY_BYTES_MAX:
            return problems.TOO_LARGE
        if coding is not None and coding.lower() != "chunked":
            return problems.NOT_IMPLEMENTED
        if coding is not None and self.version == "1.0":
            return problems.BROKEN_HEAD
        is_server = self.target == b"*" and self.method == "OPTIONS"
        if not is_server and not _target_of(self.target):
            return problems.ODD_TARGET
        if host is None:
            return problems.NO_HOST if self.version == "1.1" else None
        if _is_host(host):
            return None
        return problems.MANY_HOSTS if ", " in host else problems.ODD_HOST

    # Called by the parser.

    def on_message_begin(self) -> None:
        if self.is_whole:  # The beginning of another one is lost, so no one is read behind it.
            self.keeps = False
            raise EOFError

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; trailers after the body are thrown away."""
        if self._in_body or not (key := _key(name[:NAME_BYTES_MAX])):
            return
        # The parser leaves white space behind a value, which is none of it (RFC 9112 §5.1).
        text, before = value.rstrip(b" \t").decode("latin-1"), self.fields.get(key)
        self.fields[key] = text if before is None else f"{before}, {text}"

    def on_headers_complete(self) -> None:
        self._in_body = True

    def on_body(self, body: bytes) -> None:
        self.body += body
        self.left -= len(body)
        self._quiet = 0

    def on_message_complete(self) -> None:
        self.is_whole = True
        self.keeps = self.version == "1.1" and self.parser.should_keep_alive()


class Exchange:
    """One request, which has come whole, and its reply.

    `refused` says why it is no request. `owner` is whose turn it takes: an organization or machine
    client if its token has been verified (`claims`), else an address.
    """

    owner: Owner = None
    claims: Claims | None = None

    def __init__(
        self, connection: "Connection", request: Request, refused: Refused | None, *, keep: bool
    ) -> None:
        if refused is not None:
            request.method, request.version = "-", "1.1"
        self.environ, self.content = request.environ(connection.client), bytes(request.body)
        self.refused = refused
        self.keep_alive = keep  # Else the connection ends with the reply.
        self.is_over = False
        self.ended = connection.ended  # The client has gone, or sends no more.
        self._connection = connection
        self._in_chunks = False

    def attempt(self) -> Environ:
        """Return all of the request for one attempt to answer it, which may change it."""
        return {**self.environ, "wsgi.input": BytesIO(self.content)}

    async def reply(self, reply: Reply) -> None:
        """Send a whole reply; it and the methods below raise ClientGone if nobody takes it."""
        has_body = self.environ["REQUEST_METHOD"] != "HEAD"
        head = self._head(reply.status, reply.headers)
        await self._write(head, reply.body if has_body else b"")
        self.is_over = True

    async def start(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Start a reply in parts. In HTTP/1.0 the end of the connection ends it."""
        self._in_chunks = self.environ["SERVER_PROTOCOL"] == "HTTP/1.1"
        chunked = [("Transfer-Encoding", "chunked")] if self._in_chunks else []
        await self._write(self._head(status, [*headers, *chunked]))

    async def send(self, part: bytes) -> None:
        """Send a part, which is not empty."""
        await self._write(b"%x\r\n%s\r\n" % (len(part), part) if self._in_chunks else part)

    async def end(self) -> None:
        """End a reply in parts."""
        await self._write(b"0\r\n\r\n" if self._in_chunks else b"")
        self.is_over = True

    def _head(self, status: int, headers: Iterable[tuple[str, str]]) -> bytes:
        last = [] if self.keep_alive else [("connection", "close")]
        own = [_line_of_status(status), f"date: {_date_at(int(time.time()))}"]
        lines = [*own, *[f"{name.lower()}: {value}" for name, value in (*headers, *last)], "", ""]
        head = "\r\n".join(lines)
        if not head.count("\r") == head.count("\n") == len(lines) - 1:
            raise ValueError  # One would be another header, or another reply.
        return head.encode("latin-1")

    async def _write(self, *parts: bytes) -> None:
        await self._connection.drain()
        self._connection.write(*parts)


class Load:
    """All connections; when they are too many, or hold too much, who has waited longest goes."""

    def __init__(self, shown: Callable[[int], object] = int) -> None:
        """`shown` is given the number of connections, each time that it changes."""
        self._shown = shown
        self.connections: set[Connection] = set()
        self.tasks: set[Task[None]] = set()  # Theirs; one may outlast its connection.
        # Those that wait for a request or a part of it, the longest first.
        self.waiting: dict[Connection, None] = {}
        self._more_bytes = 0
        self._connections_max = min(CONNECTIONS_MAX, _allow_files(FILES) // 2)

    def enter(self, connection: "Connection") -> None:
        self.connections.add(connection)
        self._shown(len(self.connections))
        if len(self.connections) > self._connections_max and self.waiting:
            next(iter(self.waiting)).transport.abort()
        self.waiting[connection] = None

    def leave(self, connection: "Connection") -> None:
        self.connections.discard(connection)
        self._shown(len(self.connections))
        self.waiting.pop(connection, None)

    def add(self, count: int) -> None:
        """Count up to `count` more bytes as held since they were last added up."""
        self._more_bytes += count
        if self._more_bytes <= RECOUNT_BYTES:
            return
        self._more_bytes = 0
        total = sum(each.held_bytes() for each in self.connections)
        for each in [*self.waiting]:
            if total <= HELD_BYTES_MAX:
                return
            if held := each.held_bytes():
                total -= held
                each.cut_off(problems.UNAVAILABLE)


class Connection(asyncio.Protocol):
    """One client, which has one request answered after the other, in a task."""

    transport: Transport

    def __init__(
        self,
        answer: Callable[[Exchange], Awaitable[None]],
        load: Load,
        read_s: float,
        keep_alive_s: float,
    ) -> None:
        self.client = ""
        self.ended = Event()  # The client sends no more.
        self._answer, self._load = answer, load
        self._read_s, self._keep_alive_s = read_s, keep_alive_s
        self._loop = asyncio.get_running_loop()
        self._timer: TimerHandle | None = None  # Of what the client has to send.
        self._backlog = bytearray()  # What has come and is not read yet.
        self._news: Future[None] | None = None  # What a read waits for.
        self._cut_off_by: Refused | None = None
        self._request = Request()  # The one that comes next.
        self._exchange: Exchange | None = None  # The one that is being answered.
        self._full: Event | None = None  # Too much is written; set when enough has been taken.
        self._has_begun = False  # Something of it has come.
        self._is_idle = False  # Nothing has come since the last reply.
        self._last = False  # No further request is read.
        self._stopping = False

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("Transport", transport)
        self.client = (transport.get_extra_info("peername") or [""])[0]
        self._load.enter(self)
        task = self._loop.create_task(self._serve())
        self._load.tasks.add(task)
        task.add_done_callback(self._load.tasks.discard)

    def connection_lost(self, _: Exception | None) -> None:
        self._load.leave(self)
        self.resume_writing()
        self.eof_received()

    def data_received(self, data: bytes) -> None:
        if not self._last:
            self._backlog += data
            self._load.add(len(data))
            if len(self._backlog) > HEAD_BYTES_MAX:
                self.transport.pause_reading()
            self._wake()

    def eof_received(self) -> bool:
        """Go on answering a client that has ended only its own side, but wait for no news."""
        self.ended.set()
        self._wake()
        return True

    def pause_writing(self) -> None:
        self._full = Event()

    def resume_writing(self) -> None:
        if self._full is not None:
            self._full.set()
            self._full = None

    # Called by the server, the load and exchanges.

    def shutdown(self) -> None:
        """Take one request more at most; it gets a little time, as a client may be sending it."""
        self._stopping = True
        if self._exchange is not None:
            self._exchange.keep_alive = False
        elif not self._last and self._full is None:
            self._await_request()

    def cut_off(self, problem: Refused) -> None:
        """End what is incomplete; a request that has begun gets a reply that says why."""
        if self._full is None and (self._has_begun or self._backlog.lstrip(b"\r\n")):
            self._cut_off_by = problem
            self._wake()
        else:
            self.transport.abort()

    def held_bytes(self) -> int:
        """Return the bytes held: of an arriving request, of the present one, and of its reply."""
        given = len(self._exchange.content) if self._exchange is not None else 0
        coming = len(self._request.body) + len(self._backlog)
        return coming + given + self.transport.get_write_buffer_size()

    def write(self, *parts: bytes) -> None:
        self._load.add(sum(map(len, parts)))
        self.transport.writelines(parts)

    async def drain(self) -> None:
        """Wait until the client has taken enough; raises ClientGone if it takes nothing."""
        while (full := self._full) is not None:
            unsent = self.transport.get_write_buffer_size()
            try:
                async with asyncio.timeout(WRITE_S):
                    await full.wait()
            except TimeoutError:
                if self.transport.get_write_buffer_size() >= unsent:
                    self.transport.abort()
        if self.transport.is_closing():
            raise ClientGone

    async def _serve(self) -> None:
        """Have one request answered after the other."""
        try:
            self._await_request()
            with suppress(ClientGone):
                while (exchange := await self._next()) is not None:
                    self._exchange = exchange
                    await self._answer(exchange)
                    is_last = not exchange.is_over or not exchange.keep_alive
                    self._exchange = exchange = None  # Who is idle keeps none in memory.
                    if not self.transport.is_closing():
                        self._load.enter(self)
                    await self.drain()
                    if is_last:
                        break
                    if self._backlog or self._stopping:
                        self._await_request()
                    else:
                        self._is_idle = True
                        self._wait(self._keep_alive_s, self.transport.abort)
                await self._linger()
        finally:
            self._wait(None)
            self.transport.abort()

    async def _next(self) -> Exchange | None:
        """Return the next request when it has come whole; None: there is none."""
        request, refused = self._request, None
        try:
            await self._read(request)
        except EOFError:
            return None
        except _NoRequest as error:
            refused = error.args[0]
            if not request.target and (line := _line_of(self._backlog)):
                request.target = line[2]
        request.parser = None  # Which holds the request.
        self._wait(None)
        self._load.waiting.pop(self, None)
        self._request, self._has_begun, self._cut_off_by = Request(), False, None
        keep = refused is None and request.keeps and not self._stopping
        self._last = not keep
        return Exchange(self, request, refused, keep=keep)

    async def _read(self, request: Request) -> None:
        """Read a request. Raises _NoRequest, or EOFError at the end of the connection."""
        size = await self._size_of_head()
        request.read_head(bytes(self._backlog[:size]))
        self._take(size)
        expects = request.version == "1.1" and not request.is_whole and not self._backlog
        if expects and request.fields.get("HTTP_EXPECT", "").lower() == "100-continue":
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not request.is_whole:
            while not self._backlog:
                await self._more()
            # Nothing behind the body, where its length is known.
            request.read_body(self._take(request.left if request.left > 0 else len(self._backlog)))

    async def _size_of_head(self) -> int:
        """Wait for a whole head; return its size."""
        searched = 0
        while True:
            if not self._has_begun:  # Empty lines may stand before it (RFC 9112 §2.2).
                self._backlog = self._backlog.lstrip(b"\r\n")
                self._has_begun = bool(self._backlog)
            end = _end_of_head(self._backlog, max(0, searched - 2))
            searched = size = end.end() if end else len(self._backlog)
            if size > HEAD_BYTES_MAX:
                in_target = b"\n" not in self._backlog[: HEAD_BYTES_MAX // 2]
                raise _NoRequest(problems.URI_TOO_LONG if in_target else problems.HEAD_TOO_LARGE)
            if self._has_begun and not self._backlog[:1].isupper():
                raise _NoRequest(problems.BROKEN_HEAD)
            if end:
                return size
            await self._more()

    async def _more(self) -> None:
        """Wait until more has come, or nothing will."""
        if self.ended.is_set():
            raise EOFError
        if self._is_idle and self._has_begun:
            self._await_request()
        if self._cut_off_by is None:
            self._news = self._loop.create_future()
            await self._news
        if self._cut_off_by is not None:
            raise _NoRequest(self._cut_off_by)

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._backlog[:size])
        del self._backlog[:size]
        if len(self._backlog) <= HEAD_BYTES_MAX and not self.transport.is_closing():
            self.transport.resume_reading()
        return taken

    def _await_request(self) -> None:
        """Bound the time of a request, from its first byte to its last."""
        self._is_idle = False
        seconds = min(self._read_s, SOON_S) if self._stopping else self._read_s
        self._wait(seconds, partial(self.cut_off, problems.TIMED_OUT))

    def _wait(self, seconds: float | None, then: Callable[[], object] = lambda: None) -> None:
        """Set the one timer of what the client has to send."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._loop.call_later(seconds, then)

    async def _linger(self) -> None:
        """Wait until all is sent; what still arrives is thrown away."""
        self._last = True
        self._backlog.clear()
        await self.drain()  # Ends here where the client has gone.
        self.transport.resume_reading()
        self.transport.set_write_buffer_limits(0)
        await self.drain()
        self.transport.write_eof()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), LINGER_S)


@lru_cache
def _line_of_status(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"


_date_at = lru_cache(1)(partial(formatdate, usegmt=True))


@lru_cache(1024)
def _key(name: bytes) -> str:
    """Return the name of a header in WSGI; none if it has an underscore.

    WSGI could not tell it from the one with hyphens, which a proxy in front may have set.
    """
    key = name.decode("latin-1").upper().replace("-", "_")
    if b"_" in name:
        return ""
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"


def _allow_files(wanted: int) -> int:
    """Raise this process's limit of open files as far as needed and allowed; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = min(wanted, hard) if hard != resource.RLIM_INFINITY else wanted
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft
