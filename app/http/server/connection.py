"""One client: uvicorn's protocol, made strict and bounded for strangers.

One thread, the loop, holds every connection. A request goes on to the gateway only when it has
arrived whole, so a client that is slow costs a few kilobytes but never a thread.
"""

import asyncio
import re
import resource
import sys
from asyncio import TimerHandle, Transport
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Literal, cast
from urllib.parse import unquote_to_bytes

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.utils import ClientDisconnected

from app.http.edge import problems
from app.http.edge.input import BODY_BYTES_MAX
from app.http.server.loop import Environ
from app.settings import HTTP_THREADS
from domain.errors import Refused

# Bytes parsed at a time. Few, because parsed small requests take fifty times their bytes.
PARSE_BYTES = 4 * 1024
BACKLOG_BYTES_MAX = 64 * 1024  # Of later requests while one is being answered; then TCP waits.
HEAD_BYTES_MAX = 64 * 1024  # Also the limit of what may stand between two parts of a chunked body.
HEADERS_MAX = 100
NAME_BYTES_MAX = 100  # More than any header that is read has; what is remembered stays small.
# Bytes of all connections together: twice what the threads can take.
BUFFERED_BYTES_MAX = 2 * HTTP_THREADS * BODY_BYTES_MAX
RECOUNT_BYTES = 16 * 1024 * 1024  # After this many new bytes the bytes held are added up.
CONNECTIONS_MAX = 4096
FILES = 2 * CONNECTIONS_MAX  # Half of all open files are left to the rest of the process.
WRITE_S = 30.0  # A client that takes nothing of its reply for so long has gone.
# Closing with unread input resets the connection; first the client gets time to read its reply.
LINGER_S = 2.0
SOON_S = 1.0  # The time left to requests that have yet to come in whole when the process stops.

_REQUEST_LINE = re.compile(rb"[A-Z]{1,32} [^ ]+ HTTP/1\.[01]\r")
# RFC 9112 §3.2: a name or an address, perhaps with a port.
_HOST = rb"(?:(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?"
_is_host = re.compile(_HOST, re.ASCII).fullmatch
_is_target = re.compile(
    rb"/[^#]*|(?:[Hh][Tt]{2}[Pp][Ss]?)://%s(?:[/?][^#]*)?" % _HOST, re.ASCII
).fullmatch

Named = Mapping[bytes, Sequence[bytes]]  # The values of each header, by its name in lower case.


def problem_of_head(method: str, target: bytes, version: str, named: Named) -> Refused | None:
    """Say what is wrong with a head that the parser lets pass; None if nothing."""
    coding = named.get(b"transfer-encoding", ())
    if version not in {"1.0", "1.1"}:
        return problems.BROKEN_HEAD
    if method == "CONNECT" or any(value.lower() != b"chunked" for value in coding):
        return problems.NOT_IMPLEMENTED
    if any(int(value) > BODY_BYTES_MAX for value in named.get(b"content-length", ())):
        return problems.TOO_LARGE
    if coding and version == "1.0":
        return problems.BROKEN_HEAD
    is_server = target == b"*" and method == "OPTIONS"
    if not is_server and not _is_target(target):
        return problems.ODD_TARGET
    hosts = named.get(b"host", ())
    if len(hosts) > 1:
        return problems.MANY_HOSTS
    if not hosts:
        return problems.NO_HOST if version == "1.1" else None
    return None if _is_host(hosts[0]) else problems.ODD_HOST


@lru_cache(1024)
def _key(name: bytes) -> str | None:
    """Return what WSGI calls a header; None for one that is not passed on.

    Names with underscores are not, because WSGI could not tell them from those with hyphens, which
    a proxy in front may have set.
    """
    key = name.decode("latin-1").upper().replace("-", "_")
    if b"_" in name or key == "TRANSFER_ENCODING":  # The body is complete.
        return None
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"


class _Refused(Exception):
    """Raised out of a callback of the parser, with the problem."""


class Cycle(RequestResponseCycle):
    """One reply, as uvicorn writes it."""

    async def receive(self) -> Any:
        """Return when the client has gone or ended, or the process ends: then nothing is to wait.

        The request is whole in the scope.
        """
        connection = cast("Connection", self.transport)
        if not (connection.ended or connection.stopping):
            await super().receive()

    async def send(self, message: Any) -> None:
        """Send a part. HTTP/1.0 has no chunks: there the end of the connection ends the body."""
        if self.disconnected and self.response_started:
            raise ClientDisconnected
        if self.scope["http_version"] == "1.0":
            if message["type"] == "http.response.start":
                if not any(name.lower() == b"content-length" for name, _ in message["headers"]):
                    self.chunked_encoding, self.expected_content_length = False, sys.maxsize
            elif not message.get("more_body"):
                self.expected_content_length = len(message["body"])
        await super().send(message)

    async def send_500_response(self) -> None:
        """Close without a reply that is not in our shape; the gateway has one for every error."""
        self.transport.close()


class Load:
    """All connections; when they are too many, or hold too much, who has waited longest goes."""

    def __init__(self) -> None:
        self.connections: Collection[Any] = ()  # The server's set of them.
        # Those that wait for a request or a part of it, the longest first.
        self.waiting: dict[Connection, None] = {}
        self._more_bytes = 0
        self._connections_max = min(CONNECTIONS_MAX, _allow_files(FILES) // 2)

    def enter(self, connection: "Connection") -> None:
        if len(self.connections) > self._connections_max and self.waiting:
            next(iter(self.waiting)).transport.abort()
        self.waiting[connection] = None

    def update(self, count: int) -> None:
        """Note that up to `count` more bytes are held than at the last count."""
        self._more_bytes += count
        if self._more_bytes <= RECOUNT_BYTES:
            return
        self._more_bytes = 0
        total = sum(each.buffered_bytes() for each in self.connections)
        for each in [*self.waiting]:
            if total <= BUFFERED_BYTES_MAX:
                return
            if size := each.buffered_bytes():
                total -= size
                each.cut_off(problems.UNAVAILABLE)


class Connection(HttpToolsProtocol):
    """One client. Uvicorn writes its replies; what is read, and for how long, is decided here.

    Of a request the gateway gets `environ` (as WSGI has it, without what is the same for all), its
    whole `body`, and the `problem` for which it is refused, in a scope that else is ASGI's.
    """

    def __init__(
        self, *given: Any, load: Load, read_s: float, keep_alive_s: float, **named: Any
    ) -> None:
        super().__init__(*given, **named)
        # Uvicorn's own parser goes on behind the last request.
        self.parser = httptools.HttpRequestParser(self)
        self._load, self._read_s, self._keep_alive_s = load, read_s, keep_alive_s
        self._backlog = bytearray()
        self._raw = bytearray()  # What has been parsed with the head that is arriving.
        self._timer: TimerHandle | None = None
        self._until_s = 0.0  # When the request must be whole or begun, as the loop counts.
        self._idle = False  # Nothing has come since the last reply.
        self._last = False  # No further request is read.
        self.ended = False  # The client sends no more.
        self.stopping = self._lingers = False
        self._given = 0  # Bytes of the body that is with the application.
        self._unsent = 0
        self._forget()

    def _forget(self) -> None:
        """Forget the request that has arrived."""
        self._at: Literal["", "head", "body"] = ""  # Which part of a request is arriving.
        self.url, self._named, self._body = b"", dict[bytes, list[bytes]](), bytearray()
        self._headers = 0
        self._head = 0  # Bytes of the head of the request that is arriving.
        self._quiet = 0  # Bytes since the request began, or since a part of its body came.
        self._length = 0  # Bytes of its body; 0 also in chunks.

    # Called by the loop.

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # As uvicorn.
        super().connection_made(transport)
        self._load.enter(self)
        self._wait_for(self._read_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_timer(None)
        self._load.waiting.pop(self, None)
        self._end_reading()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._last:
            self._load.update(len(data))
            self._backlog += data
            self._feed()

    def eof_received(self) -> bool:  # type: ignore[override]  # Uvicorn closes at once.
        """Go on answering a client that has ended only its own side, but wait for no news."""
        self.ended = True
        if is_busy := self._is_busy():
            self.cycle.message_event.set()
        return is_busy and not self._lingers

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unsent = self.transport.get_write_buffer_size()
        self._await_client()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._idle:
            self._wait_for(self._keep_alive_s)
        elif not self._lingers:
            self._await_client()

    # Called by the parser.

    def on_message_begin(self) -> None:
        self._at = "head"

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; trailers after the body are thrown away."""
        if self._at == "head":
            # The parser leaves white space behind a value, which is none of it (RFC 9112 §5.1).
            self._named.setdefault(name.lower(), []).append(value.rstrip(b" \t"))
            self._headers += 1
            if self._headers > HEADERS_MAX:
                raise _Refused(problems.HEAD_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """Refuse at once what the head already makes wrong."""
        self._at, self._head, self._quiet = "body", self._quiet, 0
        method, version = self.parser.get_method().decode(), self.parser.get_http_version()
        # The parser lets several spaces pass, and other protocols, such as RTSP/1.0.
        if b"%s %s HTTP/%s\r\n" % (method.encode(), self.url, version.encode()) not in self._raw:
            raise _Refused(problems.BROKEN_HEAD)
        del self._raw[:-PARSE_BYTES]  # In the rest a further head may stand.
        self._length = sum(map(int, self._named.get(b"content-length", ())))
        if problem := problem_of_head(method, self.url, version, self._named):
            raise _Refused(problem)

    def on_body(self, body: bytes) -> None:
        self._body += body
        self._quiet = 0
        if len(self._body) > BODY_BYTES_MAX:
            raise _Refused(problems.TOO_LARGE)

    def on_message_complete(self) -> None:
        """Have a complete request answered, behind those that came before it."""
        if not self.parser.should_upgrade():  # Otherwise `_read_again` parses it anew.
            version = self.parser.get_http_version()
            keep_alive = version == "1.1" and self.parser.should_keep_alive() and not self.stopping
            self._enqueue(self.parser.get_method().decode(), version, keep_alive=keep_alive)

    # Called by uvicorn.

    def on_response_complete(self) -> None:
        """Go on with the next request, or wait for one."""
        if self.transport.is_closing() or self._lingers:
            return
        if self.pipeline:
            self.cycle, app = self.pipeline.pop()
            self._start_asgi_task(self.cycle, app)
            return
        self._load.enter(self)
        self._idle = True
        self._wait_for(self._keep_alive_s)
        self.transport.resume_reading()
        self._feed()
        if self.ended and not self._is_busy():
            self.transport.close()

    def shutdown(self) -> None:
        """Take one request more at most; it gets a little time, as a client may be sending it."""
        self.stopping = True
        if self._is_busy():
            self.cycle.keep_alive = False
            self.cycle.message_event.set()
        elif not self._last:
            self._wait_for(self._read_s)

    # What a cycle takes for its transport.

    def write(self, data: bytes) -> None:
        self._load.update(len(data))
        self.transport.write(data)

    def close(self) -> None:
        """Close when all is sent; what still arrives until then is thrown away."""
        self._lingers = True
        self._end_reading()
        if self.ended or self.transport.is_closing():
            self.transport.close()
            return
        self._load.enter(self)
        self.transport.resume_reading()
        self.transport.write_eof()
        self._unsent = sys.maxsize
        self._set_timer(LINGER_S, self._cut)

    # What all connections ask of one.

    def cut_off(self, problem: Refused) -> None:
        """End what is incomplete; a request that has begun gets a reply that says why."""
        if self._at:
            self._refuse(problem)
        else:
            self.transport.abort()

    def buffered_bytes(self) -> int:
        """Return the bytes held: of arriving heads and bodies, and of replies being sent."""
        head = self._quiet if self._at == "head" else self._head
        coming = head + len(self._body) + len(self._backlog)
        given = self._given if self._is_busy() else 0
        return coming + given + self.transport.get_write_buffer_size()

    def _is_busy(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _end_reading(self) -> None:
        self._last = True
        self._backlog.clear()
        self.pipeline.clear()

    # The one timer of a connection.

    def _wait_for(self, seconds: float) -> None:
        """Give the client so long for what it sends next, and little at the end of the process."""
        self._until_s = self.loop.time() + (min(seconds, SOON_S) if self.stopping else seconds)
        self._await_client()

    def _await_client(self) -> None:
        """Wait for a client to take its reply; else for ours, or until what it sends is due."""
        if self.flow.write_paused:
            self._set_timer(WRITE_S, self._cut)
        elif self._is_busy():
            self._set_timer(None)
        else:
            left_s = self._until_s - self.loop.time()
            self._set_timer(left_s, partial(self.cut_off, problems.TIMED_OUT))

    def _set_timer(self, seconds: float | None, then: Callable[[], object] = lambda: None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, then)

    def _cut(self) -> None:
        """Give up a client that takes nothing of its reply any more."""
        unsent, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        if 0 < self._unsent < unsent:
            self._set_timer(WRITE_S, self._cut)
        else:
            self.transport.abort()

    # From bytes to a request.

    def _feed(self) -> None:
        """Parse what has arrived until a request is complete; the rest waits unparsed."""
        while self._backlog and not self._last and not self._is_busy():
            count = self._count_of_next()
            data = bytes(self._backlog[:count])
            del self._backlog[:count]
            self._parse(data)
        if len(self._backlog) >= BACKLOG_BYTES_MAX:
            self.transport.pause_reading()
        if self._last or self._is_busy():
            return
        if self._idle and self._at:
            self._idle = False
            self._wait_for(self._read_s)
        expected = self._named.pop(b"expect", ()) if self._at == "body" else ()
        is_expected = b"100-continue" in map(bytes.lower, expected)
        if is_expected and self.parser.get_http_version() == "1.1":
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _count_of_next(self) -> int:
        """Return how many bytes to parse: no part of a request behind the present head or body."""
        if self._at == "body":
            left = self._length - len(self._body)
            return min(PARSE_BYTES, left) if left > 0 else PARSE_BYTES
        if not self._at:  # Empty lines may stand before a request (RFC 9112 §2.2).
            self._backlog = self._backlog.lstrip(b"\r\n")
        lead = self._raw[-3:] if self._at else b""
        end = (lead + self._backlog[:PARSE_BYTES]).find(b"\r\n\r\n")
        return PARSE_BYTES if end < 0 else end + 4 - len(lead)

    def _parse(self, data: bytes) -> None:
        self._quiet += len(data)
        if self._at != "head":
            self._raw.clear()
        self._raw += data
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_again(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(self._problem_of(error, data))
        else:
            if self._at and self._quiet > HEAD_BYTES_MAX:
                in_target = len(self.url) > HEAD_BYTES_MAX // 2
                self._refuse(problems.URI_TOO_LONG if in_target else problems.HEAD_TOO_LARGE)

    def _problem_of(self, error: Exception, data: bytes) -> Refused:
        if isinstance(error.__context__, _Refused):
            return cast("Refused", error.__context__.args[0])
        is_method = isinstance(error, httptools.HttpParserInvalidMethodError)
        if is_method and not self._is_busy() and _REQUEST_LINE.match(data):
            return problems.NOT_IMPLEMENTED
        return problems.BROKEN_BODY if self._at == "body" else problems.BROKEN_HEAD

    def _read_again(self, rest: bytes) -> None:
        """Parse a request again without its `Upgrade`, so that its body is read as usual."""
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        if b"close" in b",".join(self._named.pop(b"connection", ())).lower():
            lines.append(b"connection: close")
        self._named.pop(b"upgrade", None)
        lines += [b"%s: %s" % (name, each) for name, all_ in self._named.items() for each in all_]
        self.parser = httptools.HttpRequestParser(self)
        self._forget()
        self._backlog[:0] = b"\r\n".join([*lines, b"", rest])

    def _refuse(self, problem: Refused) -> None:
        """Answer a problem in its turn, then close, because what follows cannot be trusted."""
        if not self._last:
            self._enqueue("-", keep_alive=False, problem=problem)

    def _environ(self, method: str, version: str) -> Environ:
        """Return the request as WSGI has it; a header that comes twice is joined into one value."""
        target = self.url
        if not target.startswith(b"/") and b"://" in target:  # It names a server (RFC 9112 §3.2).
            target = re.sub(rb"^[^/]*//[^/?]*", b"", target)
        path, _, query = target.partition(b"?")
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": unquote_to_bytes(path or b"/").decode("latin-1"),
            "QUERY_STRING": query.decode("latin-1"),
            "REQUEST_URI": (path or b"/").decode("latin-1"),
            "SERVER_PROTOCOL": f"HTTP/{version}",
            "REMOTE_ADDR": self.client[0] if self.client else "",
        }
        for name, values in self._named.items():
            if (key := _key(name[:NAME_BYTES_MAX])) is not None:
                environ[key] = b", ".join(values).decode("latin-1")
        environ["CONTENT_LENGTH"] = str(len(self._body)) if self._body else ""
        return environ

    def _enqueue(
        self, method: str, version: str = "1.1", *, keep_alive: bool, problem: Refused | None = None
    ) -> None:
        """Have a request answered, after those that came before it."""
        scope = {
            "type": "http",
            "http_version": version,
            "method": method,
            "environ": self._environ(method, version),
            "body": bytes(self._body),
            "problem": problem,
        }
        cycle = Cycle(
            cast("Any", scope),
            cast("Transport", self),
            self.flow,
            self.logger,
            self.access_logger,
            access_log=False,  # Paths hold numbers.
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=keep_alive,
            on_response=self.on_response_complete,
        )
        self._given = len(self._body)
        self._forget()
        self._idle, self._last = False, not keep_alive
        if self._is_busy():
            self.pipeline.appendleft((cycle, self.app))
            return
        self._load.waiting.pop(self, None)
        self.cycle = cycle
        self._await_client()
        self._start_asgi_task(cycle, self.app)


def _allow_files(wanted: int) -> int:
    """Raise this process's limit of open files as far as needed and allowed; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = min(wanted, hard) if hard != resource.RLIM_INFINITY else wanted
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft
