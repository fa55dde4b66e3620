"""Calls the WSGI application (PEP 3333) for complete requests, in a bounded number of threads."""

import logging
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from io import BytesIO
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes
from wsgiref.types import WSGIApplication

from app.settings import HTTP_THREADS
from domain.at_once import WouldWait

WAITING_REQUESTS_MAX = 1024  # More would wait longer than any client does, so they get 503 at once.
# A reply in parts holds its thread to the end, so a slow reader is cut off after this time.
STREAM_S = 600.0
AT_ONCE_MAX = 64  # Requests that the front's thread answers per round; then others get a turn.
CONTENT_HEADERS = {"CONTENT_TYPE", "CONTENT_LENGTH"}

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Request:
    """A request that has arrived whole; its body is without chunk framing."""

    method: str
    target: bytes
    version: str
    headers: Sequence[tuple[bytes, bytes]]
    body: bytearray
    client: tuple[Any, ...]
    keep: bool

    @property
    def path(self) -> bytes:
        """The path as it was sent, still percent-encoded."""
        return split_target(self.target)[0]


def split_target(target: bytes) -> tuple[bytes, bytes]:
    """Return path and query of a request target, which may also name a server (RFC 9112 §3.2)."""
    if not target.startswith(b"/") and b"://" in target:
        _, slash, path = target.partition(b"://")[2].partition(b"/")
        target = slash + path or b"/"
    path, _, query = target.partition(b"#")[0].partition(b"?")
    return path, query


def log_place(logger: logging.Logger, error: Exception) -> None:
    """Log where an error was raised but not its text, which may hold a number or a token."""
    place = "".join(traceback.format_tb(error.__traceback__))
    logger.error("%s raised in\n%s", type(error).__name__, place)


class Pending(Protocol):
    """Work that a reply waits for."""

    def submit(self, tell: Callable[[], object], ring: Callable[[], object]) -> None:
        """Start the work. At its end call `tell`, then `ring`; many ends may share one `ring`."""

    def expire(self, age_s: float) -> None:
        """End the work if it has waited too long."""

    def reply(self) -> bytes:
        """Return the whole reply; WouldWait if a thread must answer the request from scratch."""
        ...


AtOnce = Callable[["Request"], Pending | None]  # Must not wait or raise; None: a thread answers.


class FrontThread(Protocol):
    """The thread that holds the connections."""

    def soon(self, do: Callable[[object], object]) -> None:
        """Have `do` called in this thread at its next wake-up; any thread may call this."""

    def ring(self) -> None:
        """Wake the thread."""


class ReplyWriter(Protocol):
    """Where a reply is written to."""

    @property
    def front(self) -> FrontThread:
        """The front that the request came in by."""
        ...

    def send(self, data: bytes, until_s: float) -> None:
        """Send a part; OSError when the client has gone, or at `until_s` of the monotonic clock."""

    def answered(self, last: bytes, *, keep: bool) -> None:
        """Send the end; `keep` says that the connection may be used again."""


class RequestThreads:
    """Threads that answer requests. Requests queue for a free thread, up to a bound.

    Requests that `at_once` takes are answered in the front's thread, which must not wait.
    """

    def __init__(
        self,
        app: WSGIApplication,
        server: tuple[Any, ...],
        *,
        many: bool,
        at_once: AtOnce | None = None,
    ) -> None:
        """Start the threads. `server` is our address; `many`: there are other processes."""
        self._app = app
        self._at_once = at_once
        self._at_once_left = AT_ONCE_MAX
        self._postponed: dict[Pending, float] = {}  # Since when each one waits.
        self._begun: list[tuple[ReplyWriter, Request, Pending]] = []  # In this round.
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
        self._queue: SimpleQueue[tuple[ReplyWriter, Request] | None] = SimpleQueue()
        for number in range(HTTP_THREADS):
            Thread(target=self._run, name=f"http-{number}", daemon=True).start()

    def take(self, reply: ReplyWriter, request: Request) -> bool:
        """Have a request answered; False when too many wait. Called by the front's thread."""
        if self._begin_at_once(reply, request):
            return True
        if self._queue.qsize() >= WAITING_REQUESTS_MAX:
            return False
        self._queue.put((reply, request))
        return True

    def begin_round(self) -> None:
        """Allow `AT_ONCE_MAX` more requests to be answered in the front's thread."""
        self._at_once_left = AT_ONCE_MAX

    def expire(self, now_s: float) -> None:
        """End work that has waited too long for its outcome."""
        for pending, since_s in [*self._postponed.items()]:
            pending.expire(now_s - since_s)

    def end_round(self) -> None:
        """Submit the work of this round together, so that it shares a commit."""
        begun, self._begun = self._begun, []
        for reply, request, pending in begun:
            end = partial(self._end, reply, request, pending)
            try:
                pending.submit(partial(reply.front.soon, end), reply.front.ring)
            except Exception as error:  # noqa: BLE001  # As a thread would, close the connection.
                del self._postponed[pending]
                log_place(logger, error)
                reply.answered(b"", keep=False)

    def _begin_at_once(self, reply: ReplyWriter, request: Request) -> bool:
        if self._at_once is None or not self._at_once_left:
            return False
        pending = self._at_once(request)
        if pending is None:
            return False
        self._at_once_left -= 1
        self._postponed[pending] = time.monotonic()
        self._begun.append((reply, request, pending))
        return True

    def _end(self, reply: ReplyWriter, request: Request, pending: Pending, _: object) -> None:
        if self._postponed.pop(pending, None) is None:
            return  # It had expired.
        try:
            data = pending.reply()
        except WouldWait:
            # The queue may exceed its bound here, because the number of such requests is bounded.
            self._queue.put((reply, request))
        except Exception as error:  # noqa: BLE001  # As a thread would, close the connection.
            log_place(logger, error)
            reply.answered(b"", keep=False)
        else:
            reply.answered(data, keep=request.keep)

    def stop(self) -> None:
        """End the threads, each after its present request."""
        for _ in range(HTTP_THREADS):
            self._queue.put(None)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            reply, request = item
            del item
            call = _Call(reply, request)
            try:
                call.run(self._app, {**self._base, **environ_of(request)})
            except Exception as error:  # noqa: BLE001  # Whatever the error, the thread goes on to the next request.
                call.give_up(error)
            del reply, request, call  # A waiting thread must not keep its last request in memory.


class _Call:
    """One call of the application."""

    def __init__(self, reply: ReplyWriter, request: Request) -> None:
        self.reply = reply
        self.request = request
        self._status = ""
        self._headers: list[tuple[str, str]] = []
        self._ended = False
        self._until_s = float("inf")

    def give_up(self, error: Exception) -> None:
        """Close the connection of a reply that was cut short by a lost client or a bug."""
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
        self.reply.answered(last, keep=keep)

    def _start(self, status: str, headers: list[tuple[str, str]], _: Any = None, /) -> Any:
        self._status, self._headers = status, headers

    def _write(self, blocks: Iterator[bytes]) -> None:
        blocks = filter(None, blocks)  # An empty block would end a chunked body.
        block = next(blocks, b"")
        self._until_s = time.monotonic() + STREAM_S
        lengths = [int(value) for name, value in self._headers if name.lower() == "content-length"]
        code = int(self._status[:3])
        bare = self.request.method == "HEAD" or code in {204, 304} or code < HTTPStatus.OK
        keep = self.request.keep
        if bare or lengths:
            left = 0 if bare else lengths[0]
            data = head(self._status, self._headers, self.request, keep=keep) + block
            left -= len(block)
            while left > 0 and (block := next(blocks, b"")):
                self.reply.send(data, self._until_s)
                data = block
                left -= len(block)
            self._end(data, keep=keep and left <= 0)
            return
        self._stream(block, blocks, chunked=self.request.version == "1.1")

    def _stream(self, block: bytes, blocks: Iterator[bytes], *, chunked: bool) -> None:
        keep = self.request.keep and chunked
        headers = [*self._headers, ("Transfer-Encoding", "chunked")] if chunked else self._headers
        self.reply.send(head(self._status, headers, self.request, keep=keep), self._until_s)
        while block:
            part = b"%x\r\n%s\r\n" % (len(block), block) if chunked else block
            self.reply.send(part, self._until_s)
            block = next(blocks, b"")
        self._end(b"0\r\n\r\n" if chunked else b"", keep=keep)


def head(
    status: str, headers: Sequence[tuple[str, str]], request: Request | None, *, keep: bool
) -> bytes:
    """Return status line and headers of a reply; `keep`: the connection stays open."""
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers)]
    lines.append(_date(int(time.time())))
    if not keep:
        lines.append("Connection: close")
    elif request is not None and request.version == "1.0":
        lines.append("Connection: keep-alive")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1")


def environ_of(request: Request) -> dict[str, Any]:
    """Return the WSGI environ of a request.

    A header that comes twice is joined into one value. Names with underscores are dropped, because
    WSGI could not tell them from those with hyphens, which a proxy in front may have set.
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
        return None  # The body is complete.
    return key if key in CONTENT_HEADERS else f"HTTP_{key}"


@lru_cache(1)
def _date(second: int) -> str:
    return f"Date: {formatdate(second, usegmt=True)}"
