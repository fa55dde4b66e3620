"""Complete requests meet the WSGI application in a bounded number of threads (PEP 3333)."""

import logging
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes
from wsgiref.types import WSGIApplication

from app.threads import HTTP_THREADS

WAITING_REQUESTS_MAX = 1024  # They would wait longer than anybody: the next ones get 503 at once.
CONTENT_HEADERS = {"CONTENT_TYPE", "CONTENT_LENGTH"}

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Request:
    """A request that has come in whole; its body is without the framing of chunks."""

    method: str
    target: bytes
    version: str
    headers: Sequence[tuple[bytes, bytes]]
    body: bytearray
    client: tuple[Any, ...]
    keep: bool

    @property
    def path(self) -> bytes:
        """The path as it was sent, encoded."""
        return split_target(self.target)[0]


def split_target(target: bytes) -> tuple[bytes, bytes]:
    """Return path and query of a request target, which may also name a server (RFC 9112 §3.2)."""
    if not target.startswith(b"/") and b"://" in target:
        _, slash, path = target.partition(b"://")[2].partition(b"/")
        target = slash + path or b"/"
    path, _, query = target.partition(b"#")[0].partition(b"?")
    return path, query


def log_place(logger: logging.Logger, error: Exception) -> None:
    """Log where an error was raised, not its text: that may hold a number or a token."""
    place = "".join(traceback.format_tb(error.__traceback__))
    logger.error("%s raised in\n%s", type(error).__name__, place)


class Reply(Protocol):
    """Where a reply is written to."""

    def send(self, data: bytes) -> None:
        """Send a part; raises OSError when the client has gone."""

    def answered(self, last: bytes, *, keep: bool) -> None:
        """Send the end; `keep` when the connection may be used again."""


class RequestThreads:
    """Threads that answer; requests wait for them in order, up to a bound."""

    def __init__(self, app: WSGIApplication, server: tuple[Any, ...], *, many: bool) -> None:
        """Start the threads. `server` is the address listened on; `many` other processes too."""
        self._app = app
        self._base = {
            "SCRIPT_NAME": "",
            "SERVER_NAME": str(server[0]),
            "SERVER_PORT": str(server[1]),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": many,
            "wsgi.run_once": False,
        }
        self._queue: SimpleQueue[tuple[Reply, Request] | None] = SimpleQueue()
        for number in range(HTTP_THREADS):
            Thread(target=self._run, name=f"http-{number}", daemon=True).start()

    def take(self, reply: Reply, request: Request) -> bool:
        """Have a request answered; False when too many wait."""
        if self._queue.qsize() >= WAITING_REQUESTS_MAX:
            return False
        self._queue.put((reply, request))
        return True

    def stop(self) -> None:
        """End the threads, each after the request that it is at."""
        for _ in range(HTTP_THREADS):
            self._queue.put(None)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            reply, request = item
            del item
            call = _Call(reply, request)
            try:
                call.run(self._app, {**self._base, **environ_of(request)})
            except Exception as error:  # noqa: BLE001  # A thread serves the next one all the same.
                call.give_up(error)
            del reply, request, call  # What waits for the next one holds none.


class _Call:
    """One call of the application."""

    def __init__(self, reply: Reply, request: Request) -> None:
        self._reply = reply
        self._request = request
        self._status = ""
        self._headers: list[tuple[str, str]] = []
        self._ended = False

    def give_up(self, error: Exception) -> None:
        """Close the connection of a reply that cannot be ended: the client has gone, or a bug."""
        if not isinstance(error, OSError):
            log_place(logger, error)
        if not self._ended:
            self._end(b"", keep=False)

    def run(self, app: WSGIApplication, environ: dict[str, Any]) -> None:
        blocks = app(environ, self._start)
        try:
            self._write(iter(blocks))
        finally:
            if (close := getattr(blocks, "close", None)) is not None:
                close()

    def _end(self, last: bytes, *, keep: bool) -> None:
        self._ended = True  # From here on the connection belongs to the front again.
        self._reply.answered(last, keep=keep)

    def _start(self, status: str, headers: list[tuple[str, str]], _: Any = None, /) -> Any:
        self._status, self._headers = status, headers

    def _write(self, blocks: Iterator[bytes]) -> None:
        block = next(blocks, b"")
        lengths = [int(value) for name, value in self._headers if name.lower() == "content-length"]
        code = int(self._status[:3])
        bare = self._request.method == "HEAD" or code in {204, 304} or code < HTTPStatus.OK
        keep = self._request.keep
        if bare or lengths:
            left = 0 if bare else lengths[0]
            data = head(self._status, self._headers, self._request, keep=keep) + block
            left -= len(block)
            while left > 0 and (block := next(blocks, b"")):
                self._reply.send(data)
                data = block
                left -= len(block)
            self._end(data, keep=keep and left <= 0)
            return
        self._stream(block, blocks, chunked=self._request.version == "1.1")

    def _stream(self, block: bytes, blocks: Iterator[bytes], *, chunked: bool) -> None:
        keep = self._request.keep and chunked
        headers = [*self._headers, ("Transfer-Encoding", "chunked")] if chunked else self._headers
        self._reply.send(head(self._status, headers, self._request, keep=keep))
        while block:
            self._reply.send(b"%x\r\n%s\r\n" % (len(block), block) if chunked else block)
            block = next((each for each in blocks if each), b"")
        self._end(b"0\r\n\r\n" if chunked else b"", keep=keep)


def head(
    status: str, headers: Sequence[tuple[str, str]], request: Request | None, *, keep: bool
) -> bytes:
    """Return status line and headers of a reply, and what becomes of the connection."""
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers)]
    lines.append(_date(int(time.time())))
    if not keep:
        lines.append("Connection: close")
    elif request is not None and request.version == "1.0":
        lines.append("Connection: keep-alive")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1")


def environ_of(request: Request) -> dict[str, Any]:
    """Return what WSGI says of a request.

    A header that comes twice is one value. Names with underscores are dropped: WSGI could not tell
    them from those with hyphens, which a proxy in front may have set.
    """
    path, query = split_target(request.target)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "REQUEST_URI": path.decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{request.version}",
        "REMOTE_ADDR": request.client[0],
        "wsgi.input": BytesIO(request.body),
    }
    for name, value in request.headers:
        key = _key(name)
        if key is not None:
            text = value.decode("latin-1")
            environ[key] = f"{environ[key]}, {text}" if key in environ else text
    environ["CONTENT_LENGTH"] = str(len(request.body)) if request.body else ""
    return environ


@lru_cache(1024)
def _key(name: bytes) -> str | None:
    if b"_" in name:
        return None
    key = name.decode("latin-1").upper().replace("-", "_")
    if key == "TRANSFER_ENCODING":
        return None  # The body is whole.
    return key if key in CONTENT_HEADERS else f"HTTP_{key}"


@lru_cache(1)
def _date(second: int) -> str:
    return f"Date: {formatdate(second, usegmt=True)}"
