"""The front of `web` and `serve`: one thread holds every connection and passes on whole requests.

A client that is slow with its head, its body or its next request costs a few kilobytes but never a
thread, because only complete requests reach the threads that run the application. A thread writes
its reply itself; what the client does not take at once is sent by the front.
"""

import errno
import logging
import re
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import Enum, auto
from selectors import EVENT_READ, EVENT_WRITE
from threading import Lock
from typing import Any, NoReturn

import httptools

from app.http.edge.input import BODY_BYTES_MAX
from app.http.edge.listening import allow_files
from app.http.edge.own_replies import OwnReplies
from app.http.edge.problems import (
    BROKEN_BODY,
    BROKEN_HEAD,
    HEAD_TOO_LARGE,
    NOT_IMPLEMENTED,
    TIMED_OUT,
    TOO_LARGE,
    UNAVAILABLE,
    URI_TOO_LONG,
    Problem,
)
from app.http.edge.request_threads import Request, RequestThreads, log_place
from app.settings import HTTP_THREADS

# Bytes of one read; also the most that is kept of later requests while one is being answered.
READ_BYTES = 64 * 1024
# Bytes parsed at a time. Few, because parsed small requests take twenty times their bytes.
PARSE_BYTES = 4 * 1024
HEAD_BYTES_MAX = 64 * 1024  # Also the limit of what may stand between two parts of a chunked body.
HEADERS_MAX = 100
# Bytes of all connections together: twice what the threads can take.
HELD_BYTES_MAX = 2 * HTTP_THREADS * BODY_BYTES_MAX
RECOUNT_BYTES = 16 * 1024 * 1024  # After this many new bytes the bytes held are added up.
CONNECTIONS_MAX = 4096
FILES = 2 * CONNECTIONS_MAX  # Half of all open files are left to the rest of the process.
# Connections closed together when there is no room, because finding them is expensive.
ROOM_MADE = 256
# Replies that the front itself sends to one connection before the others get their turn.
OWN_REPLIES_MAX = 2
KEEP_ALIVE_S = 75.0  # Longer than proxies keep their connections, so that the proxy closes first.
WRITE_S = 30.0  # A client that takes nothing of its reply for so long has gone.
# Closing with unread input resets the connection; first the client gets time to read its reply.
LINGER_S = 2.0
# Headers that are read before the body.
LOOKED_AT = {b"content-length", b"transfer-encoding", b"expect"}
REQUEST_LINE = re.compile(rb"[A-Z]{1,32} [^ ]+ HTTP/1\.[01]\r")
TICK_S = 0.25
NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
SOON_S = 1.0  # The time left to requests that are still arriving when the process stops.

logger = logging.getLogger(__name__)


class _State(Enum):
    READING = auto()  # A request is arriving, or is expected.
    WORKING = auto()  # The socket belongs to the thread that answers.
    WRITING = auto()
    IDLE = auto()
    LINGERING = auto()  # Everything is sent; what still arrives is thrown away.


class _Refused(Exception):
    """Raised out of a callback of the parser; `_problem` holds the problem."""


class Connection:
    """One client. Everything but `send` and `answered` runs in the front's thread."""

    def __init__(self, front: "Front", sock: socket.socket, client: tuple[Any, ...]) -> None:
        self.sock = sock
        self.client = client
        self.state = _State.READING
        self.since_s = time.monotonic()
        self.watched = 0
        self.front = front
        self._lock = Lock()  # Protects against input that arrives while a thread ends its reply.
        self._parser = httptools.HttpRequestParser(self)
        self._ready: deque[Request | Problem] = deque()
        self._request: Request | None = None  # The request being answered.
        self._backlog = b""
        self._out: bytes | memoryview = b""
        self._keep = True
        self._ended = False  # The client sends no more.
        self._problem: Problem | None = None
        self._failed = False  # What still arrives cannot be parsed.
        self._target = b""  # Of the arriving request, as far as it is here.
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()
        self._in_head = True
        self._begun = self._expects = False
        self._quiet = 0  # Bytes since the request began, or since a part of its body came.

    # Callbacks for the parser, httptools.

    def on_message_begin(self) -> None:
        self._target, self._headers, self._body = b"", [], bytearray()
        self._in_head = self._begun = True
        self._expects = False

    def on_url(self, part: bytes) -> None:
        """Add a part of the target."""
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; trailers after the body are thrown away."""
        if self._in_head:
            # The parser leaves white space behind a value, which is none of it (RFC 9112 §5.1).
            self._headers.append((name, value.rstrip(b" \t")))
            if len(self._headers) > HEADERS_MAX:
                self._refuse(HEAD_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """Refuse at once what the head already makes wrong."""
        self._in_head, self._quiet = False, 0
        version = self._parser.get_http_version()
        if version not in {"1.0", "1.1"}:
            self._refuse(BROKEN_HEAD)
        for name, value in self._headers:
            if name.lower() not in LOOKED_AT:
                continue
            match name.lower():
                case b"content-length" if int(value) > BODY_BYTES_MAX:
                    self._refuse(TOO_LARGE)
                case b"transfer-encoding" if value.strip().lower() != b"chunked":
                    self._refuse(NOT_IMPLEMENTED)
                case b"transfer-encoding" if version == "1.0":
                    self._refuse(BROKEN_HEAD)
                case b"expect":
                    self._expects = value.lower() == b"100-continue" and version == "1.1"

    def on_body(self, part: bytes) -> None:
        """Add a part of the body."""
        self._body += part
        self._quiet = 0
        if len(self._body) > BODY_BYTES_MAX:
            self._refuse(TOO_LARGE)

    def on_message_complete(self) -> None:
        """Queue a complete request behind those that came before it."""
        if self._parser.should_upgrade():
            return  # `_read_again` parses it anew.
        self._ready.append(
            Request(
                self._parser.get_method().decode(),
                self._target,
                self._parser.get_http_version(),
                self._headers,
                self._body,
                self.client,
                self._parser.should_keep_alive(),
            )
        )
        self._body = bytearray()
        self._begun = self._expects = False
        self._quiet = 0

    # Called by the front.

    def handle(self, mask: int) -> None:
        """Continue when the socket can be read or written."""
        if self.sock.fileno() < 0:
            return  # An earlier event of the same round has closed it.
        if self.state is _State.WRITING:
            self._flush()
        elif mask & EVENT_READ:
            self._hear()

    def go_on(self, _: object = None) -> None:
        """Do what comes next after a reply."""
        replies = 0
        while True:
            if self._out:
                self.front.held_more(len(self._out))
                self._enter(_State.WRITING, EVENT_WRITE)
                return
            if not self._keep:
                self._linger()
                return
            if self._ready:
                if replies == OWN_REPLIES_MAX:
                    self._enter(_State.WORKING, 0)
                    self.front.call(self)
                    return
                replies += 1
                if self._answer(self._ready.popleft()):
                    return
            elif self._backlog and not self._failed:
                self._read_on()
            elif self._ended:
                self.close()
                return
            else:
                self._enter(_State.READING if self._begun else _State.IDLE, EVENT_READ)
                return

    def expire(self, now_s: float) -> None:
        """Cut off what has taken too long."""
        age_s, stopping = now_s - self.since_s, self.front.stopping
        match self.state:
            case _State.READING:
                if age_s > (min(self.front.read_s, SOON_S) if stopping else self.front.read_s):
                    self.cut_off(TIMED_OUT)
            case _State.IDLE if stopping or age_s > KEEP_ALIVE_S:
                self.close()
            case _State.WRITING if age_s > WRITE_S:
                self.close()
            case _State.LINGERING if stopping or age_s > LINGER_S:
                self.close()

    def cut_off(self, problem: Problem) -> None:
        """End what is incomplete; a request that has begun gets a reply that says why."""
        if not self._begun or self.state is not _State.READING:
            self.close()
            return
        self._fail(problem)
        self.go_on()

    def held_bytes(self) -> int:
        """Return the bytes held: of arriving heads and bodies, and of replies being sent."""
        whole = [each for each in [self._request, *self._ready] if isinstance(each, Request)]
        coming = len(self._body) + len(self._backlog) + (self._quiet if self._in_head else 0)
        return coming + len(self._out) + sum(len(each.body) for each in whole)

    def close(self) -> None:
        self.front.forget(self)
        self._ready.clear()
        self._body = bytearray()
        self.sock.close()

    # Called by the thread that answers.

    def send(self, data: bytes, until_s: float) -> None:
        """Send a part of a reply; OSError when the client has gone, or is too slow."""
        rest = memoryview(data)
        while rest:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            try:
                rest = rest[self.sock.send(rest) :]
            except BlockingIOError:
                with selectors.DefaultSelector() as selector:
                    selector.register(self.sock, EVENT_WRITE)
                    if not selector.select(min(WRITE_S, left_s)):
                        raise TimeoutError from None

    def answered(self, last: bytes, *, keep: bool) -> None:
        """Send the end of a reply; what the client does not take at once is sent by the front."""
        sent = 0
        try:
            sent = self.sock.send(last) if last else 0
        except BlockingIOError:
            pass
        except OSError:
            keep, last = False, b""
        with self._lock:
            self._request = None
            self._out, self._keep = last[sent:], keep
            self.since_s = time.monotonic()
            if keep and not (
                self._out or self._ready or self._backlog or self._begun or self._ended
            ):
                self.state = _State.IDLE
                return
        self.front.call(self)

    def _hear(self) -> None:
        with self._lock:
            try:
                data = self.sock.recv(READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            self.front.held_more(len(data))
            if self.state is _State.WORKING:
                self._backlog += data
                self._ended = self._ended or not data
                if self._ended or len(self._backlog) >= READ_BYTES:
                    self.front.watch(self, 0)
                return
        if not data:
            self.close()
        elif self.state is not _State.LINGERING:
            if self.state is _State.IDLE:
                self._enter(_State.READING, EVENT_READ)
            self._backlog = data
            self._read_on()
            if self._ready:
                self.go_on()
            elif self._expects:
                self._expects = False
                with suppress(OSError):
                    self.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _read_on(self) -> None:
        """Parse what has arrived until a request is complete; the rest waits unparsed."""
        while self._backlog and not self._ready and not self._failed:
            data, self._backlog = self._backlog[:PARSE_BYTES], self._backlog[PARSE_BYTES:]
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        self._quiet += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_again(data[upgrade.args[0] :])
        except httptools.HttpParserInvalidMethodError:
            self._fail(
                NOT_IMPLEMENTED if not self._ready and REQUEST_LINE.match(data) else BROKEN_HEAD
            )
        except httptools.HttpParserError:
            in_body = self._begun and not self._in_head
            self._fail(self._problem or (BROKEN_BODY if in_body else BROKEN_HEAD))
        else:
            if self._begun and self._quiet > HEAD_BYTES_MAX:
                in_target = len(self._target) > HEAD_BYTES_MAX // 2
                self._fail(URI_TOO_LONG if in_target else HEAD_TOO_LARGE)

    def _read_again(self, rest: bytes) -> None:
        """Parse a request again without its `Upgrade`, so that its body is read as usual."""
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._fail(NOT_IMPLEMENTED)
            return
        version = self._parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (method, self._target, version)]
        for name, value in self._headers:
            if name.lower() == b"connection":
                lines += [b"Connection: close"] if b"close" in value.lower() else []
            elif name.lower() != b"upgrade":
                lines.append(b"%s: %s" % (name, value))
        self._parser = httptools.HttpRequestParser(self)
        self._backlog = b"\r\n".join([*lines, b"", rest]) + self._backlog

    def _refuse(self, problem: Problem) -> NoReturn:
        self._problem = problem
        raise _Refused

    def _fail(self, problem: Problem) -> None:
        """Answer a problem in its turn, then close, because what follows cannot be trusted."""
        self._ready.append(problem)
        self._failed = True
        self._body = bytearray()

    def _answer(self, item: Request | Problem) -> bool:
        """Start or write a reply; True when a thread has taken over."""
        own: bytes | None = None
        problem, target = UNAVAILABLE, self._target
        headers: Sequence[tuple[bytes, bytes]] = self._headers
        if isinstance(item, Problem):
            problem = item
        else:
            target, headers = item.target, item.headers  # `self` may hold the next request's.
            self._keep = item.keep and not self.front.stopping
            own = self.front.replies.to(item, keep=self._keep)
            if own is None and self._hand_on(item):
                return True
        if own is None:
            self._keep = False
            own = self.front.replies.problem(problem, target, headers)
        self._out = own
        self._send_out()
        return False

    def _hand_on(self, request: Request) -> bool:
        deaf = self._ended or self._failed or len(self._backlog) >= READ_BYTES
        self.front.watch(self, 0 if deaf else EVENT_READ)
        self._request, self.state = request, _State.WORKING
        if self.front.threads.take(self, request):
            return True
        self._request = None
        return False

    def _flush(self) -> None:
        if self._send_out():
            self.since_s = time.monotonic()
        if not self._out:
            self.go_on()

    def _send_out(self) -> int:
        try:
            sent = self.sock.send(self._out)
        except BlockingIOError:
            return 0
        except OSError:
            self._out, self._keep = b"", False
            return 0
        self._out = self._out[sent:]
        return sent

    def _linger(self) -> None:
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
        if self._ended:
            self.close()
        else:
            self._enter(_State.LINGERING, EVENT_READ)

    def _enter(self, state: _State, events: int) -> None:
        self.state, self.since_s = state, time.monotonic()
        self.front.watch(self, events)


class Front:
    """Listens, reads, and passes requests to an application until it is stopped."""

    def __init__(
        self,
        listeners: Iterable[socket.socket],
        threads: RequestThreads,
        replies: OwnReplies,
        read_s: float,
        finish_s: float,
    ) -> None:
        self.threads = threads
        self.replies = replies
        self.read_s = read_s
        self.stopping = False
        self._more_bytes = 0
        self._finish_s = finish_s
        self._listeners = list(listeners)
        self.addresses = [each.getsockname() for each in self._listeners]
        self._connections: set[Connection] = set()
        self._connections_max = min(CONNECTIONS_MAX, allow_files(FILES) // 2)
        self._calls: deque[Callable[[object], object]] = deque()
        self._woken, self._wake = socket.socketpair()
        for each in (self._woken, self._wake):
            each.settimeout(0)
        self._selector = selectors.DefaultSelector()
        self._listens = self._full = False

    def run(self) -> None:
        """Serve until `stop`; then finish what has begun, within `finish_s`."""
        self._selector.register(self._woken, EVENT_READ, self._hear_calls)
        self._accept_on()
        ends_s = float("inf")
        looked_s = time.monotonic()
        while True:
            self.threads.begin_round()
            for key, mask in self._selector.select(TICK_S):
                self._guarded(key.data, mask)
            self.threads.end_round()
            if self._more_bytes > RECOUNT_BYTES:
                self._bound_bodies()
            now_s = time.monotonic()
            if self.stopping and ends_s == float("inf"):
                ends_s = now_s + self._finish_s
                self._stop_listening()
            if self.stopping or now_s - looked_s > TICK_S:
                looked_s = now_s
                self._expire(now_s)
            if self.stopping and (not self._connections or now_s > ends_s):
                break
        self._end()

    def stop(self) -> None:
        """Accept no more requests; any thread and any signal handler may call this."""
        self.stopping = True
        self.ring()

    def call(self, connection: Connection) -> None:
        """Have a connection go on in the front's thread."""
        self.soon(connection.go_on)
        self.ring()

    def soon(self, do: Callable[[object], object]) -> None:
        """Have `do` called in the front's thread, at its next wake-up."""
        self._calls.append(do)

    def held_more(self, count: int) -> None:
        """Note that up to `count` more bytes are held than at the last count."""
        self._more_bytes += count

    def watch(self, connection: Connection, events: int) -> None:
        """Set what to wait for on a connection."""
        before, connection.watched = connection.watched, events
        if before == events:
            return
        if not events:
            self._selector.unregister(connection.sock)
        elif before:
            self._selector.modify(connection.sock, events, connection.handle)
        else:
            self._selector.register(connection.sock, events, connection.handle)

    def forget(self, connection: Connection) -> None:
        self.watch(connection, 0)
        self._connections.discard(connection)

    def ring(self) -> None:
        with suppress(OSError):  # A full pipe wakes it as well, and after the end nobody listens.
            self._wake.send(b"\0")

    def _hear_calls(self, _: int) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(READ_BYTES)
        # Calls that are added meanwhile wait until the other events have been handled.
        for _ in range(len(self._calls)):
            self._guarded(self._calls.popleft(), None)

    def _guarded(self, handle: Callable[[Any], object], given: object) -> None:
        """Call `handle`; no error of ours may end the thread on which all connections depend."""
        try:
            handle(given)
        except Exception as error:  # noqa: BLE001  # Whatever the error.
            log_place(logger, error)
            if isinstance(failed := getattr(handle, "__self__", None), Connection):
                failed.close()

    def _accept_on(self) -> None:
        self._listens = True
        for each in self._listeners:
            self._selector.register(each, EVENT_READ, lambda _, each=each: self._accept(each))

    def _accept(self, listener: socket.socket) -> bool:
        """Accept one connection only, so that other processes on this socket get their share."""
        if len(self._connections) >= self._connections_max:
            self._make_room()
        try:
            sock, client = listener.accept()
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in NO_ROOM:
                return True  # The client has left before it was accepted.
            if not self._full:
                logger.error("cannot accept connections: %s", error.strerror)  # noqa: TRY400  # The reason says it all.
            self._full = True
            self._make_room()
            self._accept_off()
            return False
        self._full = False
        sock.settimeout(0)
        with suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(self, sock, client)
        self._connections.add(connection)
        self.watch(connection, EVENT_READ)
        return True

    def _accept_off(self) -> None:
        """Stop accepting until the next tick, or the selector would report clients in a loop."""
        if self._listens:
            for each in self._listeners:
                self._selector.unregister(each)
        self._listens = False

    def _make_room(self) -> None:
        """Close connections that waited longest, idle first; never one being answered."""
        waiting = {_State.IDLE: 0, _State.LINGERING: 0, _State.READING: 1}
        found = [each for each in self._connections if each.state in waiting]
        found.sort(key=lambda each: (waiting[each.state], each.since_s))
        for each in found[:ROOM_MADE]:
            each.close()

    def _bound_bodies(self) -> None:
        """Cut off the requests that take longest to arrive, while too many bytes are held."""
        self._more_bytes = 0
        held = {each: each.held_bytes() for each in self._connections}
        total = sum(held.values())
        under_way = {_State.READING, _State.WRITING}
        slow = [each for each in held if held[each] and each.state in under_way]
        for each in sorted(slow, key=lambda each: each.since_s):
            if total <= HELD_BYTES_MAX:
                return
            total -= held[each]
            self._guarded(each.cut_off, UNAVAILABLE)

    def _expire(self, now_s: float) -> None:
        self.threads.expire(now_s)
        for each in list(self._connections):
            self._guarded(each.expire, now_s)
        if not self._listens and not self.stopping:
            self._accept_on()

    def _stop_listening(self) -> None:
        for each in self._listeners:
            while self._accept(each):  # Connections that the system has accepted are answered too.
                pass
        self._accept_off()
        for each in self._listeners:
            each.close()

    def _end(self) -> None:
        self.threads.stop()
        for each in self._listeners:
            each.close()
        for connection in list(self._connections):
            if connection.state is not _State.WORKING:
                connection.close()
        self._selector.close()
        self._woken.close()
        self._wake.close()
