"""The way from the server (ASGI) to the application: on the loop, or Flask (WSGI) in a thread.

A request has arrived whole. The loop answers what need not wait: `/livez`, what nobody may have,
and what `at_once` takes. Everything else queues for a thread, up to a bound. Both take the requests
of each owner in turn.
"""

import asyncio
import logging
import sys
import time
from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from io import BytesIO
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote_to_bytes
from uuid import UUID, uuid4
from wsgiref.types import WSGIApplication

import msgspec

from app.http.edge.problems import INTERNAL, UNAVAILABLE, retry_after
from app.http.edge.replies import LATER, ReplyMeta, failure_body, oauth_body
from app.http.edge.request import NO_SNIFF, NO_STORE, Count, note_answer, request_id_of
from app.http.renewals import Renewals
from app.http.threads import Threads
from app.watch.trouble import log_place
from domain.at_once import WouldWait, at_once, resting
from domain.cause import Clock
from domain.errors import RateLimited, Refused
from domain.limiter import Limiter, Owner
from projections.engine.shape import format_time

TURNS_MAX = 16  # Requests that the loop begins before it reads what else has come: some 4 ms.
TURNS_OF_ONE = TURNS_MAX // 4  # While others come.
SHARED_S = 1.0  # So long all callers of a probe get the same reply.
# A reply in parts holds its thread to the end, so a slow reader is cut off after this time.
STREAM_S = 600.0
LIVEZ = "/livez"
ALIVE = msgspec.json.encode({"ok": True})
CONTENT_HEADERS = {"CONTENT_TYPE", "CONTENT_LENGTH"}
NAME_BYTES_MAX = 100  # More than any header that is read has; what is remembered stays small.

Scope = dict[str, Any]  # Of a request, as ASGI has it.
Send = Callable[[Any], Any]
Headers = Sequence[tuple[bytes, bytes]]  # Names in lower case.

logger = logging.getLogger(__name__)


class Reply(NamedTuple):
    """A whole reply."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Pending(Protocol):
    """Work that a reply waits for."""

    def submit(self, tell: Callable[[], object], ring: Callable[[], object]) -> None:
        """Start the work. At its end call `tell`, then `ring`; many ends may share one `ring`."""

    def expire(self, age_s: float) -> None:
        """End the work if it has waited too long."""

    def reply(self) -> Reply:
        """Return the whole reply; WouldWait if a thread must answer the request from scratch."""
        ...


class Later(Protocol):
    """What a reply may wait for, at most `wait_s`, without a thread."""

    wait_s: float

    def begin(self, tell: Callable[[], object]) -> bool:
        """Have `tell` called when another answer is due, in any thread; False: do not wait."""
        ...

    def end(self, *, again: bool) -> None:
        """Wait no longer; `again`: the request is answered anew."""


class Loop(NamedTuple):
    """What the loop does with a request."""

    # Says in whose queue it waits for its turn on the loop, from what is known already.
    owner: Callable[[Scope], Owner] = lambda _: None
    # Given its body as well: begins or answers it. None: it is for a thread, in the queue of that
    # owner. Raises WouldWait, with nothing done.
    begin: Callable[[Scope, bytes], tuple[Owner, Pending | Reply | None]] = lambda *_: (None, None)


TO_THREADS = Loop()  # Everything is for a thread, and nobody is told from another.


class Gateway:
    """The ASGI application of the server."""

    def __init__(
        self,
        app: WSGIApplication,
        replies: "OwnReplies",
        server: tuple[Any, ...],
        *,
        many: bool,
        loop: Loop = TO_THREADS,
    ) -> None:
        """Start the threads. `server` is our address; `many`: there are other processes."""
        self._app = app
        self._replies = replies
        self._loop = loop
        # There are as many places as connections.
        self._turns = Limiter(TURNS_MAX, TURNS_OF_ONE, alone=TURNS_MAX, places=sys.maxsize)
        self._round: list[Owner] = []  # Who has a turn in this round of the loop.
        # By the route of a probe: since when its reply holds, and the reply.
        self._shared: dict[str, tuple[float, Future[Reply | None]]] = {}
        self._waiting: dict[Pending, float] = {}  # Since when each one waits for its outcome.
        self._begun: list[tuple[Pending, Future[None]]] = []  # In this round of the loop.
        self._told = deque[Future[None]]()  # Those whose outcome is there.
        self._parked: set[Future[bool]] | None = set()  # What replies wait for; None: at the end.
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
        self._renewals = Renewals()
        self._threads = Threads()

    async def __call__(self, scope: Scope, receive: Callable[[], Any], send: Send) -> None:
        """Answer a request."""
        body = (await receive()).get("body", b"")
        try:
            await self._turn(owner := self._loop.owner(scope))
            reply = self._replies.to(scope)
            if reply is None:
                reply = await self._answer(owner, scope, body, receive, send)
        except RateLimited as refused:
            reply = self._replies.problem(refused, scope)
        except Refused:
            await self.refuse(UNAVAILABLE, scope, receive, send)
            return
        except Exception as error:  # noqa: BLE001  # There is an answer to every error.
            log_place(logger, error)
            reply = self._replies.problem(INTERNAL, scope)
        if reply is not None:
            await _send(send, reply)

    async def refuse(self, problem: Refused, scope: Scope, _: object, send: Send) -> None:
        """Reply with a problem, after which the connection closes."""
        reply = self._replies.problem(problem, scope)
        reply.headers.append(("Connection", "close"))
        await _send(send, reply)

    async def expire(self) -> None:
        """End work that has waited too long for its outcome."""
        now_s = time.monotonic()
        for pending, since_s in [*self._waiting.items()]:
            pending.expire(now_s - since_s)

    def end_waits(self) -> None:
        """Send every reply that waits for news as it is, and let no other one wait."""
        parked, self._parked = self._parked or (), None
        for news in parked:
            _settle(news, result=False)

    async def _answer(
        self, owner: Owner, scope: Scope, body: bytes, receive: Callable[[], Any], send: Send
    ) -> Reply | None:
        """Answer in turn; None: the reply has been sent. Raises Refused where too many wait."""
        if (route := self._replies.probe(scope)) is not None:
            return await self._share(route, scope, send)
        owner, reply = await self._try(scope, body, owner)
        if reply is not None:
            return reply
        call = self._call(owner, scope, body, send)
        reply = await call.ended
        until_s = time.monotonic() + (call.later.wait_s if call.later is not None else 0.0)
        with suppress(Refused):  # Then what there is already is sent.
            while call.later is not None and await self._wait(call.later, until_s, receive):
                call = self._call(owner, scope, body, send)
                reply = await call.ended
        return reply

    async def _turn(self, owner: Owner) -> None:
        """Wait for a turn on the loop: at once, unless many have come in this round."""
        loop = asyncio.get_running_loop()
        if not self._round:
            loop.call_soon(self._end_round, loop)
        turn: Future[None] = loop.create_future()
        if self._turns.enter(owner, partial(self._begin, owner, turn)):
            self._round.append(owner)
        else:
            await turn

    def _begin(self, owner: Owner, turn: Future[None]) -> None:
        self._round.append(owner)
        _settle(turn)

    def _end_round(self, loop: AbstractEventLoop) -> None:
        ended, self._round = self._round, []
        for owner in ended:
            self._turns.leave(owner)
        if self._round:
            loop.call_soon(self._end_round, loop)

    async def _share(self, route: str, scope: Scope, send: Send) -> Reply | None:
        """Return the reply of a probe that all its callers get for a while; one of them asks."""
        since_s, shared = self._shared.get(route, (0.0, None))
        if shared is not None and (not shared.done() or time.monotonic() - since_s < SHARED_S):
            await asyncio.wait([shared])
            reply = shared.result()
            return reply and self._replies.again(reply, route, scope)
        # It must suit all: as if asked with a GET that says nothing of its caller but its id.
        named = [each for each in scope["headers"] if each[0] == b"x-request-id"]
        call = self._call(None, {**scope, "method": "GET", "headers": named}, b"", send)
        self._shared[route] = time.monotonic(), call.ended
        await asyncio.wait([call.ended])
        return call.ended.result()

    def _call(self, owner: Owner, scope: Scope, body: bytes, send: Send) -> "_Call":
        call = _Call(scope, body, send, self._replies)
        self._threads.submit(owner, partial(call.run, self._app, self._base))
        return call

    async def _wait(self, later: Later, until_s: float, receive: Callable[[], Any]) -> bool:
        """Wait for news without a thread; tell whether there is any before `until_s`.

        Who hangs up, or sends no more, is not waited for.
        """
        if self._parked is None:
            return False
        loop = asyncio.get_running_loop()
        news: Future[bool] = loop.create_future()
        if not later.begin(partial(_soon, loop, partial(_settle, news, result=True))):
            return False
        self._parked.add(news)
        gone = asyncio.ensure_future(receive())
        left_s = until_s - time.monotonic()
        await asyncio.wait([news, gone], timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if self._parked is not None:
            self._parked.discard(news)
        is_new = news.done() and news.result()
        later.end(again=is_new)
        return is_new

    def stop(self) -> None:
        """End the threads, each after its present request."""
        self._renewals.stop()
        self._threads.stop()

    async def _try(self, scope: Scope, body: bytes, owner: Owner) -> tuple[Owner, Reply | None]:
        """Answer on the loop; None: a thread must, in the queue of the returned owner.

        What a caller may do and his keys are remembered for a second, and read anew shortly before.
        If they have ended all the same, they are read first: a thread for the whole request would
        cost several times as much.
        """
        read = set[Hashable]()
        while True:
            try:
                return await self._answer_at_once(scope, body)
            except WouldWait as missing:
                key, first = missing.key, missing.read
            if first is None or key in read or not await self._renewals.read_first(key, first):
                return owner, None
            read.add(key)

    async def _answer_at_once(self, scope: Scope, body: bytes) -> tuple[Owner, Reply | None]:
        """Return the reply to a request that need not wait; None: a thread must answer it.

        Raises WouldWait before it has begun.
        """
        with at_once(self._renewals.ask):
            owner, pending = self._loop.begin(scope, body)
        if pending is None or isinstance(pending, Reply):
            return owner, pending
        loop = asyncio.get_running_loop()
        outcome: Future[None] = loop.create_future()
        self._waiting[pending] = time.monotonic()
        if not self._begun:
            loop.call_soon(self._submit, loop)
        self._begun.append((pending, outcome))
        try:
            await outcome
            return owner, pending.reply()
        except WouldWait:
            return owner, None
        finally:
            del self._waiting[pending]

    def _submit(self, loop: AbstractEventLoop) -> None:
        """Submit what a round has begun together, so that few commits and wake-ups serve it."""
        begun, self._begun = self._begun, []
        ring = partial(_soon, loop, self._settle)
        for pending, outcome in begun:
            try:
                pending.submit(partial(self._told.append, outcome), ring)
            except Exception as error:  # noqa: BLE001  # It is that of the request.
                if not outcome.done():
                    outcome.set_exception(error)

    def _settle(self) -> None:
        while self._told:
            _settle(self._told.popleft())


class _Call:
    """One call of the WSGI application (PEP 3333), in a thread."""

    def __init__(self, scope: Scope, body: bytes, send: Send, replies: "OwnReplies") -> None:
        self.scope = scope
        self.body = body
        self.loop = asyncio.get_running_loop()
        # None: what could be sent has been sent.
        self.ended: Future[Reply | None] = self.loop.create_future()
        self._asgi_send = send
        self._replies = replies
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._has_begun = False
        self._until_s = float("inf")
        self.later: Later | None = None

    def run(self, app: WSGIApplication, base: Mapping[str, Any]) -> None:
        """Call the application; a reply that has begun and fails is cut short."""
        reply: Reply | None = None
        try:
            reply = self._call(app, {**base, **environ_of(self.scope, self.body)})
        except BaseException as error:  # noqa: BLE001  # Whatever the error, the thread goes on to the next request.
            if not isinstance(error, OSError):  # The client has gone, or is too slow.
                log_place(logger, error)
            if not self._has_begun:
                reply = self._replies.problem(INTERNAL, self.scope)
        _soon(self.loop, partial(_settle, self.ended, reply))

    def _call(self, app: WSGIApplication, environ: dict[str, Any]) -> Reply | None:
        blocks = app(environ, self._start)
        try:
            rest = filter(None, blocks)
            block = next(rest, b"")  # Only now must the application have called `_start`.
            self.later = environ.get(LATER)
            bare = self.scope["method"] == "HEAD" or self._status in {204, 304}
            if bare or any(name.lower() == "content-length" for name, _ in self._headers):
                return Reply(self._status, self._headers, b"".join([block, *rest]))
            self._stream(block, rest)
            return None
        finally:
            if (close := getattr(blocks, "close", None)) is not None:
                close()

    def _start(self, status: str, headers: list[tuple[str, str]], _: Any = None, /) -> Any:
        self._status, self._headers = int(status[:3]), headers

    def _stream(self, block: bytes, rest: Iterator[bytes]) -> None:
        self._until_s = time.monotonic() + STREAM_S
        self._has_begun = True
        self._send(_start_of(self._status, self._headers))
        while block:
            self._send({"type": "http.response.body", "body": block, "more_body": True})
            block = next(rest, b"")
        self._send({"type": "http.response.body", "body": b""})

    def _send(self, message: Scope) -> None:
        """Send a part; OSError when the client has gone, or takes too long altogether."""
        sent = asyncio.run_coroutine_threadsafe(self._asgi_send(message), self.loop)
        try:
            with resting():
                sent.result(max(0.0, self._until_s - time.monotonic()))
        except TimeoutError:
            sent.cancel()
            raise


class OwnReplies:
    """Replies of the server itself; they look like the application's, and are counted alike."""

    def __init__(
        self,
        clock: Clock,
        *,
        probes: Mapping[str, str] = {},
        token_paths: Collection[str] = (),
        count: Count | None = None,
        new_id: Callable[[], UUID] = uuid4,
    ) -> None:
        self._clock = clock
        self._probes = {path.encode(): route for path, route in probes.items()}
        self._token_paths = {path.encode() for path in token_paths}
        self._count = count
        self._new_id = new_id

    def to(self, scope: Scope) -> Reply | None:
        """Return the reply to a request that needs no thread; None for every other request."""
        if self.probe(scope) != LIVEZ:
            return None
        request_id = self._note(scope["method"], LIVEZ, 200, scope)
        return in_json(200, ALIVE, _own(request_id))

    def probe(self, scope: Scope) -> str | None:
        """Return the route of a probe, which has the same reply for all; None for any other."""
        return self._probes.get(scope["raw_path"]) if scope["method"] in {"GET", "HEAD"} else None

    def again(self, reply: Reply, route: str, scope: Scope) -> Reply:
        """Return the reply to another caller for this one."""
        request_id = self._note(scope["method"], route, reply.status, scope)
        headers = [each for each in reply.headers if each[0] != "X-Request-Id"]
        return reply._replace(headers=[*headers, ("X-Request-Id", request_id)])

    def problem(self, problem: Refused, scope: Scope) -> Reply:
        """Return the reply to a request that is not passed on; parts of it may be missing."""
        request_id = self._note("-", "-", problem.status, scope)
        if scope["raw_path"] in self._token_paths:
            body = msgspec.json.encode(oauth_body(problem))
        else:
            timestamp = format_time(self._clock())
            meta = ReplyMeta(timestamp=timestamp, response_time_ms=0.0, request_id=request_id)
            body = msgspec.json.encode(failure_body(problem, meta))
        return in_json(problem.status, body, [*_own(request_id), *retry_after(problem).items()])

    def _note(self, method: str, route: str, status: int, scope: Scope) -> str:
        """Log and count a reply; return the id of its request."""
        given = [value for name, value in scope["headers"] if name == b"x-request-id"]
        text = given[0].decode("latin-1") if len(given) == 1 else ""
        request_id = request_id_of(text, self._new_id)
        note_answer(self._count, method, route, status, duration_ms=0.0, request_id=request_id)
        return request_id


def _own(request_id: str) -> list[tuple[str, str]]:
    return [("X-Request-Id", request_id), NO_SNIFF, NO_STORE]


def in_json(status: int, body: bytes, headers: Iterable[tuple[str, str]]) -> Reply:
    """Return a reply in JSON with more headers than those of its body."""
    own = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    return Reply(status, [*own, *headers], body)


def environ_of(scope: Scope, body: bytes) -> dict[str, Any]:
    """Return the WSGI environ of a request.

    A header that comes twice is joined into one value. Names with underscores are dropped, because
    WSGI could not tell them from those with hyphens, which a proxy in front may have set.
    """
    path, client = scope["raw_path"], scope["client"]
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "REQUEST_URI": path.decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client[0] if client else "",
        "wsgi.input": BytesIO(body),
    }
    for name, value in scope["headers"]:
        if (key := _key(name[:NAME_BYTES_MAX])) is not None:
            text = value.decode("latin-1")
            environ[key] = f"{environ[key]}, {text}" if key in environ else text
    environ["CONTENT_LENGTH"] = str(len(body)) if body else ""
    return environ


@lru_cache(1024)
def _key(name: bytes) -> str | None:
    key = name.decode("latin-1").upper().replace("-", "_")
    if b"_" in name or key == "TRANSFER_ENCODING":  # The body is complete.
        return None
    return key if key in CONTENT_HEADERS else f"HTTP_{key}"


def _soon(loop: AbstractEventLoop, call: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # After the end of the loop nobody listens.
        loop.call_soon_threadsafe(call)


def _settle(future: Future[Any], result: object = None) -> None:
    if not future.done():
        future.set_result(result)


def _start_of(status: int, headers: Iterable[tuple[str, str]]) -> Scope:
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return {"type": "http.response.start", "status": status, "headers": encoded}


async def _send(send: Send, reply: Reply) -> None:
    await send(_start_of(reply.status, reply.headers))
    await send({"type": "http.response.body", "body": reply.body})
