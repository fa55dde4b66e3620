"""The base of scripted providers: an HTTP server over real sockets that fails on demand.

A provider is a subclass with a state of its own and a `route` for each operation:

    class Tiny(ScriptedServer):
        def __init__(self) -> None:
            super().__init__()
            self.route("look up", "GET", r"/numbers/(?P<number>[^/]+)", self.look_up)

        def look_up(self, request: Request) -> Answer:
            return 200, {"number": request.parts["number"]}, {}

    with Tiny() as tiny:
        tiny.fault(FaultKind.RESET_AFTER, on="look up")
        RemoteApi("tiny", tiny.url, …)

Handlers run one at a time, so a provider's state needs no lock.
"""

import gzip
import json
import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

HUGE_BYTES = 3 << 20
HTML = b"<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>"
NOW = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset.


class FaultKind(StrEnum):
    """What can go wrong with one request. *Effect* is what its handler does."""

    DELAY = "waits, then has its effect: success after the time-out"
    LATE_REPLY = "has its effect at once and replies late"
    DRIBBLE = "has its effect and sends its reply byte by byte"
    RESET_BEFORE = "cuts the connection and has no effect"
    RESET_AFTER = "has its effect and cuts the connection"
    HALF_BODY = "has its effect and sends half of its reply"
    HTML = "has its effect and answers 200 with a page"
    WRONG_TYPES = "has its effect and swaps texts and numbers in its reply"
    HUGE = "has its effect and sends 3 MiB of valid JSON"
    HUGE_GZIP = "the same, compressed to a few KiB"
    UNAUTHORIZED = "answers 401 and has no effect"
    RATE_LIMITED = "answers 429 with Retry-After and has no effect"
    SERVER_ERROR = "answers 500 and has no effect"
    SERVER_ERROR_AFTER = "has its effect and answers 500"
    UNAVAILABLE = "answers 503 as a proxy does, and has no effect"
    DUPLICATE = "has its effect once and sends its reply twice"
    EFFECT_TWICE = "has its effect twice, as when a proxy sends a request again"


BEFORE = {
    FaultKind.UNAUTHORIZED: 401,
    FaultKind.RATE_LIMITED: 429,
    FaultKind.SERVER_ERROR: 500,
    FaultKind.UNAVAILABLE: 503,
}


@dataclass
class Request:
    """One request as it came; `route` is "" where nothing matched."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]  # Names in lower case.
    body: bytes
    route: str = ""
    parts: dict[str, str] = field(default_factory=dict)
    fault: FaultKind | None = None
    queries: dict[str, list[str]] = field(default_factory=dict)  # Of each name all values.

    def json(self) -> Any:
        """Return the body; None if there is none."""
        return json.loads(self.body) if self.body else None

    def form(self) -> dict[str, str]:
        return _single(self.body.decode())


Answer = tuple[int, Any, Mapping[str, str]]
Handler = Callable[[Request], Answer]
Mangle = Callable[[Request, Any], Any]


@dataclass
class _Fault:
    kind: FaultKind
    on: str | None
    times: int
    seconds: float
    headers: Mapping[str, str]


class ScriptedServer:
    """Listens on a free port of 127.0.0.1 until it is closed; `url` is its base URL."""

    prefix = ""  # Of all paths, such as /v2.
    slow = ""  # What an order names whose effect comes slow_s late; empty: none.
    slow_s = 1.0

    def __init__(self, certificate: Path | None = None) -> None:
        """Listen; with a file of key and certificate, by TLS."""
        self.mangle: Mangle = lambda _, told: told  # What a reply says instead.
        self.requests: list[Request] = []
        self.ended = 0  # Requests that were answered, or cut off.
        self.accepted = 0  # Connections so far.
        self.repeats = False  # Before each reply of a connection comes a copy of the one before.
        self.delay_s = 0.0  # Of every reply; a caller of another connection does not wait for it.
        self.lock = threading.RLock()
        self._routes: list[tuple[str, str, re.Pattern[str], Handler]] = []
        self._faults: list[_Fault] = []
        self._released = threading.Event()
        self._connections: set[socket.socket] = set()
        handler = type("Connection", (_Connection,), {"provider": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._scheme = "http"
        if certificate is not None:
            self._scheme, context = "https", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name="scripted provider", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The base URL, with the prefix of its paths."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}{self.prefix}"

    def route(self, name: str, method: str, path: str, handler: Handler) -> None:
        """Answer requests whose path (without `prefix`) matches a pattern; the first wins."""
        self._routes.append((name, method, re.compile(path), handler))

    def fault(
        self,
        kind: FaultKind,
        *,
        on: str | None = None,
        times: int = 1,
        seconds: float = 30.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Let the next requests (of a route) fail; faults are played in the order given.

        `seconds`: how long DELAY and LATE_REPLY wait, and what RATE_LIMITED says. `headers`
        replace those of RATE_LIMITED.
        """
        assert on is None or on in {name for name, *_ in self._routes}, on
        with self.lock:
            self._faults.append(_Fault(kind, on, times, seconds, headers or {}))

    def heal(self) -> None:
        """Forget the faults that are still to come, and end the waits under way."""
        with self.lock:
            self._faults.clear()
            self._released.set()
            self._released = threading.Event()

    def asked(self, route: str) -> list[Request]:
        """Return the requests of a route so far, oldest first."""
        with self.lock:
            return [each for each in self.requests if each.route == route]

    def hang_up(self) -> None:
        """Cut all connections, as a provider's restart does."""
        with self.lock:
            for each in self._connections:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.heal()
        self._server.shutdown()
        self._server.server_close()
        self.hang_up()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, request: Request) -> tuple[Handler, _Fault | None]:
        """Keep a request; return who answers it and what goes wrong."""
        path = request.path.removeprefix(self.prefix)
        handler: Handler = _not_found
        for name, method, pattern, found in self._routes:
            if method == request.method and (match := pattern.fullmatch(path)):
                request.route, handler = name, found
                parts = match.groupdict().items()
                request.parts = {part: unquote(text) for part, text in parts if text is not None}
                break
        with self.lock:
            self.requests.append(request)
            fault = next((each for each in self._faults if each.on in {None, request.route}), None)
            if fault is not None:
                request.fault = fault.kind
                fault.times -= 1
                if not fault.times:
                    self._faults.remove(fault)
        if self.slow and request.route == "order" and self.slow.encode() in request.body:
            self.wait(self.slow_s)
        return handler, fault

    def end(self) -> None:
        """Note that a request has had its effect, if it has one, and its reply."""
        with self.lock:
            self.ended += 1

    @property
    def is_idle(self) -> bool:
        """Whether no request that has come in may still have an effect."""
        with self.lock:
            return self.ended == len(self.requests)

    def wait(self, seconds: float) -> None:
        """Wait until healed, at most so long."""
        if seconds:
            self._released.wait(seconds)

    def connected(self, connection: socket.socket) -> None:
        with self.lock:
            self.accepted += 1
            self._connections.add(connection)

    def disconnected(self, connection: socket.socket) -> None:
        with self.lock:
            self._connections.discard(connection)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients that hang up are what tests are about."""


class _Connection(BaseHTTPRequestHandler):
    """Answers the requests of one connection in turn."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60
    provider: ScriptedServer
    before = b""  # The last whole reply.

    def setup(self) -> None:
        super().setup()
        self.provider.connected(self.connection)

    def finish(self) -> None:
        self.provider.disconnected(self.connection)
        with suppress(OSError):
            super().finish()

    def answer(self) -> None:
        """Play the fault of the next request, or answer it."""
        request = self._request()
        try:
            self._answer(request)
        finally:
            self.provider.end()

    def _answer(self, request: Request) -> None:
        handler, fault = self.provider.take(request)
        kind = fault.kind if fault else None
        if kind is FaultKind.DELAY and fault:
            self.provider.wait(fault.seconds)
        if kind is FaultKind.RESET_BEFORE:
            self._reset()
        elif kind in BEFORE and fault:
            self._refuse(kind, fault)
        else:
            with self.provider.lock:
                status, told, headers = handler(request)
                if kind is FaultKind.EFFECT_TWICE:
                    status, told, headers = handler(request)
            told = self.provider.mangle(request, told)
            self.provider.wait(self.provider.delay_s)
            if kind is FaultKind.LATE_REPLY and fault:
                self.provider.wait(fault.seconds)
            self._send(kind, status, told, headers)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def _request(self) -> Request:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        queries = parse_qs(url.query, keep_blank_values=True)
        query = _single(url.query)
        return Request(self.command, url.path, query, headers, body, queries=queries)

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOW)
        self.close_connection = True
        self.rfile.close()
        self.wfile.close()
        self.connection.close()

    def _refuse(self, kind: FaultKind, fault: _Fault) -> None:
        status, headers = BEFORE[kind], dict(fault.headers)
        if kind is FaultKind.RATE_LIMITED and not headers:
            headers = {"Retry-After": str(max(1, round(fault.seconds)))}
        told = {"message": "scripted", "status": status}
        body = HTML if kind is FaultKind.UNAVAILABLE else json.dumps(told).encode()
        self._write(status, headers, body)

    def _send(
        self, kind: FaultKind | None, status: int, told: Any, headers: Mapping[str, str]
    ) -> None:
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        body = b"" if told is None else body
        match kind:
            case FaultKind.RESET_AFTER:
                self._reset()
            case FaultKind.HTML:
                self._write(200, {"Content-Type": "text/html"}, HTML)
            case FaultKind.WRONG_TYPES:
                self._write(status, headers, json.dumps(wrong_types(told)).encode())
            case FaultKind.HUGE:
                self._write(status, headers, body + b" " * HUGE_BYTES)
            case FaultKind.HUGE_GZIP:
                packed = gzip.compress(body + b" " * HUGE_BYTES)
                self._write(status, {**headers, "Content-Encoding": "gzip"}, packed)
            case FaultKind.SERVER_ERROR_AFTER:
                self._write(500, {}, b'{"message": "scripted"}')
            case FaultKind.HALF_BODY:
                self._write(status, headers, body, sent=len(body) // 2)
            case FaultKind.DUPLICATE:
                self._write(status, headers, body, times=2)
            case _:
                self._write(status, headers, body, slowly=kind is FaultKind.DRIBBLE)

    def _write(  # noqa: PLR0913  # What can be wrong with a reply.
        self,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        *,
        sent: int | None = None,
        slowly: bool = False,
        times: int = 1,
    ) -> None:
        given = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
        head = [f"HTTP/1.1 {status} Scripted", *(f"{k}: {v}" for k, v in given.items()), "", ""]
        text = "\r\n".join(head).encode()
        again = self.before if self.provider.repeats else b""
        self.before, text = text + body, again + text
        if times > 1:  # At once: in two parts, the second could answer the next request.
            text, body = b"", (text + body) * times
        with suppress(OSError):  # The client has gone.
            self.wfile.write(text)
            for part in _bytes_of(body) if slowly else [body[:sent]]:
                self.wfile.write(part)
                self.provider.wait(0.02 if slowly else 0)
        if sent is not None:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def wrong_types(told: Any) -> Any:
    """Return a reply in which texts are numbers, numbers are texts, and lists are objects."""
    if isinstance(told, Mapping):
        return {name: wrong_types(value) for name, value in told.items()}
    if isinstance(told, list):
        return {str(index): wrong_types(value) for index, value in enumerate(told)}
    if isinstance(told, bool) or told is None:
        return [told]
    return len(told) if isinstance(told, str) else str(told)


def _bytes_of(body: bytes) -> Iterable[bytes]:
    return (body[index : index + 1] for index in range(len(body)))


def _not_found(request: Request) -> Answer:
    return 404, {"message": f"no {request.method} {request.path}"}, {}


def _single(query: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
