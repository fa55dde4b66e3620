"""The way from a connection (ASGI) to the application: on the loop, or Flask (WSGI) in a thread.

A request has arrived whole. The loop answers what need not wait (loop.py). Everything else queues
for a thread, up to a bound. Both take the requests of each owner in turn.
"""

import asyncio
import logging
import sys
import time
from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import Any, Protocol

from app.http.edge.problems import INTERNAL, UNAVAILABLE
from app.http.edge.replies import LATER
from app.http.server.loop import ALIVE, LIVEZ, Environ, Loop, Reply, Started
from app.http.server.threads import Renewals, Threads, soon
from app.watch.trouble import log_traceback
from domain.blocking import WouldBlock, blocking, forbid_blocking
from domain.errors import RateLimited, Refused
from domain.limiter import Limiter, Owner
from domain.lookups.single import PendingLookup

ROUND_MAX = 16  # Requests that the loop starts before it reads what else has come: some 4 ms.
ROUND_OF_ONE_MAX = ROUND_MAX // 4  # While others come.
SHARED_S = 1.0  # So long all callers of a probe get the same reply.
# A reply in parts holds its thread to the end, so a slow reader is cut off after this time.
STREAM_S = 600.0
SAID = ("HTTP_", "CONTENT_")  # How the names of headers begin in WSGI.

Send = Callable[[Any], Any]
Receive = Callable[[], Any]

logger = logging.getLogger(__name__)


class Later(Protocol):
    """What a reply may wait for, at most `wait_s`, without a thread."""

    wait_s: float

    def enter(self, on_news: Callable[[], object]) -> bool:
        """Have `on_news` called when another answer is due, in any thread; False: do not wait."""
        ...

    def leave(self, *, again: bool) -> None:
        """Wait no longer; `again`: the request is answered anew."""


class Gateway:
    """The ASGI application of the server.

    Of a `scope` it takes three keys of our own, see `Connection`: `environ`, `body` and `problem`.
    """

    def __init__(self, loop_of: Callable[[], Loop], address: tuple[Any, ...]) -> None:
        """Start the threads. `loop_of` returns what answers a request now; `address` is ours."""
        self._loop_of = loop_of
        # There are as many places as connections.
        self._slots = Limiter(ROUND_MAX, ROUND_OF_ONE_MAX, alone=ROUND_MAX, places=sys.maxsize)
        # By the route of a probe: since when its reply holds, and the reply.
        self._shared: dict[str, tuple[float, Future[Reply | None]]] = {}
        self._new = list[tuple[PendingLookup, Future[None]]]()  # Started in this round.
        # By its outcome, what waits for that, and since when.
        self._waiting = dict[Future[None], tuple[PendingLookup, float]]()
        self._done = deque[Future[None]]()  # Those whose outcome is there.
        self._base = {
            "SCRIPT_NAME": "",
            "SERVER_NAME": str(address[0]),
            "SERVER_PORT": str(address[1]),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,  # There may be others.
            "wsgi.run_once": False,
        }
        self._renewals, self._threads = Renewals(), Threads()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request; an idle connection, which keeps its last scope, must not keep that."""
        loop = self._loop_of()
        environ, body, problem = map(scope.pop, ("environ", "body", "problem"))
        try:
            if problem is None:
                reply = await self._answer(_Call(loop, environ, body, receive, send))
            else:
                reply = loop.problem(problem, environ)
        except RateLimited as refused:
            reply = loop.problem(refused, environ)
        except Refused:
            reply = loop.problem(UNAVAILABLE, environ)
            reply.headers.append(("Connection", "close"))
        except Exception as error:  # noqa: BLE001  # There is an answer to every error.
            log_traceback(logger, error)
            reply = loop.problem(INTERNAL, environ)
        if reply is not None:
            await send(_start_of(reply.status, reply.headers))
            await send({"type": "http.response.body", "body": reply.body})

    def on_second(self, connections: int) -> None:
        """Count the connections, and end work that has waited too long for its outcome."""
        self._loop_of().count(connections)
        now_s = time.monotonic()
        for pending, since_s in [*self._waiting.values()]:
            pending.expire(now_s - since_s)

    def stop(self) -> None:
        """End the threads, each after its present request."""
        self._renewals.stop()
        self._threads.stop()

    async def _answer(self, call: "_Call") -> Reply | None:
        """Answer in turn; None: the reply has been sent. Raises Refused where too many wait."""
        await self._join_round(call.replies.owner(call.environ))
        if (route := call.replies.probe(call.environ)) is not None:
            return await self._share(route, call)
        if (reply := await self._try(call)) is not None:
            return reply
        owner = call.replies.owner(call.environ)  # Its token may be known only now.
        reply = await self._submit(owner, call)
        until_s = time.monotonic() + (call.later.wait_s if call.later is not None else 0.0)
        with suppress(Refused):  # Then what there is already is sent.
            while call.later is not None and await self._wait(call.later, until_s, call.receive):
                reply = await self._submit(owner, call)
        return reply

    async def _join_round(self, owner: Owner) -> None:
        """Wait for a turn on the loop: at once, unless many have come in this round."""
        loop = asyncio.get_running_loop()
        slot: Future[None] = loop.create_future()
        if not self._slots.enter(owner, partial(_settle, slot)):
            await slot
        loop.call_soon(self._slots.leave, owner)  # With all others of this round.

    async def _share(self, route: str, call: "_Call") -> Reply | None:
        """Return the reply of a probe that all its callers get for a while; one of them asks."""
        if route == LIVEZ:  # It asks nothing.
            return call.replies.again(ALIVE, route, call.environ)
        environ, (since_s, shared) = call.environ, self._shared.get(route, (0.0, None))
        is_old = shared is None or (shared.done() and time.monotonic() - since_s >= SHARED_S)
        if shared is None or is_old:
            # It must suit all: as if asked with a GET that says nothing of its caller but its id.
            said = {name: environ[name] for name in environ if not name.startswith(SAID)}
            own = {"HTTP_X_REQUEST_ID": environ.get("HTTP_X_REQUEST_ID", "")}
            call.environ, call.body = {**said, **own, "REQUEST_METHOD": "GET"}, b""
            shared = self._submit(None, call)
            self._shared[route] = time.monotonic(), shared
        await asyncio.wait([shared])
        reply = shared.result()
        return reply if is_old else reply and call.replies.again(reply, route, environ)

    async def _try(self, call: "_Call") -> Reply | None:
        """Answer on the loop; None: a thread must.

        What a caller may do and his keys are remembered for a second, and read anew shortly before.
        If they have ended all the same, they are read first: a thread for the whole request would
        cost several times as much.
        """
        read = set[Hashable]()
        while True:
            try:
                with forbid_blocking(self._renewals.request):
                    started = call.replies.start(call.environ, call.body)
            except WouldBlock as missing:
                key, first = missing.key, missing.read
            else:
                return await self._outcome(started)
            if first is None or key in read or not await self._renewals.read_first(key, first):
                return None
            read.add(key)

    async def _outcome(self, started: Started | Reply | None) -> Reply | None:
        """Return the reply to what was started; None: a thread must answer."""
        if not isinstance(started, Started):
            return started
        loop = asyncio.get_running_loop()
        outcome: Future[None] = loop.create_future()
        self._waiting[outcome] = started.pending, time.monotonic()
        if not self._new:
            loop.call_soon(self._commit, loop)
        self._new.append((started.pending, outcome))
        try:
            await outcome
            return started.reply()
        except WouldBlock:
            return None
        finally:
            del self._waiting[outcome]

    def _commit(self, loop: AbstractEventLoop) -> None:
        """Submit what a round has started together, so that few commits and wake-ups serve it."""
        new, self._new = self._new, []
        wake = partial(soon, loop, self._settle)
        for pending, outcome in new:
            pending.submit(partial(self._done.append, outcome), wake)

    def _settle(self) -> None:
        while self._done:
            _settle(self._done.popleft())

    def _submit(self, owner: Owner, call: "_Call") -> Future[Reply | None]:
        """Have a call run in a thread. Raises Refused where too many wait."""
        call.ended = asyncio.get_running_loop().create_future()
        self._threads.submit(owner, partial(call.run, self._base))
        return call.ended

    async def _wait(self, later: Later, until_s: float, receive: Receive) -> bool:
        """Wait for news without a thread; tell whether there is any before `until_s`.

        It also ends when the client hangs up or sends no more, and when the process ends.
        """
        loop = asyncio.get_running_loop()
        news: Future[None] = loop.create_future()
        if not later.enter(partial(soon, loop, partial(_settle, news))):
            return False
        gone = asyncio.ensure_future(receive())
        left_s = until_s - time.monotonic()
        await asyncio.wait([news, gone], timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        later.leave(again=news.done())
        return news.done()


class _Call:
    """A request, which a thread may answer by calls of the WSGI application (PEP 3333)."""

    ended: Future[Reply | None]  # None: what could be sent has been sent.

    def __init__(
        self, replies: Loop, environ: Environ, body: bytes, receive: Receive, send: Send
    ) -> None:
        self.replies, self.environ, self.body = replies, environ, body
        self.receive, self._asgi_send = receive, send
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._until_s: float | None = None  # When a reply in parts is cut off; None: not sent yet.
        self.later: Later | None = None

    def run(self, base: Mapping[str, Any]) -> None:
        """Call the application; a reply that has begun and fails is cut short."""
        reply: Reply | None = None
        self.later = None
        try:
            reply = self._call({**base, **self.environ, "wsgi.input": BytesIO(self.body)})
        except BaseException as error:  # noqa: BLE001  # Whatever the error, the thread goes on to the next request.
            if not isinstance(error, OSError):  # The client has gone, or is too slow.
                log_traceback(logger, error)
            if self._until_s is None:
                reply = self.replies.problem(INTERNAL, self.environ)
        soon(self.ended.get_loop(), partial(_settle, self.ended, reply))

    def _call(self, environ: Environ) -> Reply | None:
        blocks = self.replies.app(environ, self._start)
        try:
            rest = filter(None, blocks)
            block = next(rest, b"")  # Only now must the application have called `_start`.
            self.later = environ.get(LATER)
            bare = self.environ["REQUEST_METHOD"] == "HEAD" or self._status in {204, 304}
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
        self._send(_start_of(self._status, self._headers))
        while block:
            self._send({"type": "http.response.body", "body": block, "more_body": True})
            block = next(rest, b"")
        self._send({"type": "http.response.body", "body": b""})

    def _send(self, message: Mapping[str, Any]) -> None:
        """Send a part; OSError when the client has gone, or takes too long altogether."""
        assert self._until_s is not None
        sent = asyncio.run_coroutine_threadsafe(self._asgi_send(message), self.ended.get_loop())
        try:
            with blocking():
                sent.result(max(0.0, self._until_s - time.monotonic()))
        except TimeoutError:
            sent.cancel()
            raise


def _settle(future: Future[Any], result: object = None) -> None:
    if not future.done():
        future.set_result(result)


def _start_of(status: int, headers: Iterable[tuple[str, str]]) -> Mapping[str, Any]:
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return {"type": "http.response.start", "status": status, "headers": encoded}
