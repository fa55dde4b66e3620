"""The server, and who answers an exchange: the loop, or Flask in a thread; both by owner in turn.

One thread, the loop, holds every connection, and answers what need not wait: `/livez`, what nobody
may have, and what it can start, so that only the commit is left. Everything else queues for a
thread, up to a bound.
"""

import asyncio
import logging
import socket
import sys
import time
from asyncio import Future
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any
from uuid import uuid4
from wsgiref.types import WSGIApplication

import msgspec
import uvloop

from app.http.edge.problems import INTERNAL, UNAVAILABLE, retry_after
from app.http.edge.replies import ReplyMeta, failure_body, oauth_body
from app.http.edge.request import NO_SNIFF, NO_STORE, Count, note_answer, request_id_of
from app.http.server.at_once import AtOnce, Started
from app.http.server.connection import Connection, Environ, Exchange, Load, Reply, in_json
from app.http.server.threads import Call, Renewals, Threads, settle, soon
from app.settings import Settings, WrongSetting
from app.watch.trouble import log_place
from domain.at_once import WouldWait, at_once
from domain.cause import Clock
from domain.errors import RateLimited, Refused
from domain.limiter import Limiter, Owner
from projections.engine.shape import format_time

TURNS_MAX = 16  # Requests that the loop starts before it reads what else has come: some 4 ms.
TURNS_OF_ONE = TURNS_MAX // 4  # While others come.
ACCEPT_MAX = 1024  # Connections that wait to be accepted.
LOOKS_A_SECOND = 10  # For the end.
# Beside threads that compute, the loop waits so long for the interpreter at each event. At Python's
# 5 ms, a request among 500 for large replies took three times as long.
SWITCH_S = 0.0005
SHARED_S = 1.0  # So long all callers of a probe get the same reply.
LIVEZ = "/livez"
ALIVE = in_json(200, msgspec.json.encode({"ok": True}), [NO_SNIFF, NO_STORE])

logger = logging.getLogger(__name__)


@dataclass
class Site:
    """What answers now: the application in threads, and what the loop does by itself."""

    app: WSGIApplication
    loop: AtOnce | None = None


class Gateway:
    """Answers the exchanges of all connections; runs on the loop."""

    def __init__(
        self, site: Site, replies: "OwnReplies", server: tuple[Any, ...], *, many: bool
    ) -> None:
        """Start the threads. `server` is our address; `many`: there are other processes."""
        self._site = site
        self._replies = replies
        # There are as many places as connections.
        self._turns = Limiter(TURNS_MAX, TURNS_OF_ONE, alone=TURNS_MAX, places=sys.maxsize)
        # In this round of the loop: who has a turn, and which commits are to be submitted.
        self._in_round: list[Owner] = []
        self._started: list[tuple[Started, Future[None]]] = []
        self._round_ends = False  # Its end is due.
        # By the route of a probe: since when its reply holds, and the reply.
        self._shared: dict[str, tuple[float, Future[Reply | None]]] = {}
        # What has been submitted, and when.
        self._submitted: dict[Future[None], tuple[Started, float]] = {}
        self._ended = deque[Future[None]]()  # Those whose outcome is there.
        self._stops = asyncio.Event()  # No reply waits for news any more.
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

    async def __call__(self, exchange: Exchange) -> None:
        """Answer a request."""
        environ, loop = exchange.environ, self._site.loop
        reply: Reply | None
        try:
            if exchange.refused is not None:
                reply = self._replies.problem(exchange.refused, environ)
            else:
                if loop is not None:
                    loop.identify(exchange)
                await self._turn(exchange.owner)
                reply = await self._answer(exchange)
        except RateLimited as refused:
            reply = self._replies.problem(refused, environ)
        except Refused:
            exchange.keep_alive = False
            reply = self._replies.problem(UNAVAILABLE, environ)
        except Exception as error:  # noqa: BLE001  # There is an answer to every error.
            log_place(logger, error)
            reply = self._replies.problem(INTERNAL, environ)
        if loop is not None:
            loop.forget()
        if reply is not None:
            await exchange.reply(reply)

    def expire(self) -> None:
        """End work that has waited too long for its outcome."""
        now_s = time.monotonic()
        for started, since_s in [*self._submitted.values()]:
            started.commit.expire(now_s - since_s)

    def end_waits(self) -> None:
        """Send every reply that waits for news as it is, and let no other one wait."""
        self._stops.set()

    def stop(self) -> None:
        """End the threads, each after its present request."""
        self._renewals.stop()
        self._threads.stop()

    async def _turn(self, owner: Owner) -> None:
        """Wait for a turn on the loop: at once, unless many have come in this round."""
        self._end_round_soon()
        turn: Future[None] = asyncio.get_running_loop().create_future()
        if self._turns.enter(owner, partial(self._take_turn, owner, turn)):
            self._in_round.append(owner)
        else:
            await turn

    def _take_turn(self, owner: Owner, turn: Future[None]) -> None:
        self._in_round.append(owner)
        settle(turn)

    def _end_round_soon(self) -> None:
        if not self._round_ends:
            self._round_ends = True
            asyncio.get_running_loop().call_soon(self._end_round)

    def _end_round(self) -> None:
        """Let others have their turn, and submit together what has been started in this round.

        So few commits and wake-ups serve it.
        """
        self._round_ends = False
        owners, self._in_round = self._in_round, []
        for owner in owners:
            self._turns.leave(owner)
        if self._in_round:
            self._end_round_soon()
        started, self._started = self._started, []
        ring = partial(soon, asyncio.get_running_loop(), self._settle)
        for each, outcome in started:
            each.commit.submit(partial(self._ended.append, outcome), ring)

    def _settle(self) -> None:
        while self._ended:
            settle(self._ended.popleft())

    async def _answer(self, exchange: Exchange) -> Reply | None:
        """Answer in turn; None: the reply has been sent. Raises Refused where too many wait."""
        if (route := self._replies.probe(exchange.environ)) is not None:
            return await self._share(route, exchange)
        if (reply := await self._on_loop(exchange)) is not None:
            return reply
        reply = await self._in_thread(exchange, exchange.attempt())
        since_s = time.monotonic()
        with suppress(Refused):  # Then what there is already is sent.
            while reply and reply.later and await self._has_news(reply.later, since_s, exchange):
                reply = await self._in_thread(exchange, exchange.attempt())
        return reply

    async def _on_loop(self, exchange: Exchange) -> Reply | None:
        """Answer on the loop; None: a thread must.

        What a caller may do and his keys are remembered for a second, and read anew shortly before.
        If they have ended all the same, they are read first: a thread for the whole request would
        cost several times as much.
        """
        read, loop = set[Hashable](), self._site.loop
        while loop is not None:
            try:
                with at_once(self._renewals.ask):
                    started = loop.start(exchange)
                return await self._commit(started) if isinstance(started, Started) else started
            except WouldWait as missing:
                key, first = missing.key, missing.read
            if first is None or key in read or not await self._renewals.read_first(key, first):
                return None
            read.add(key)
        return None

    async def _commit(self, started: Started) -> Reply:
        """Return the reply to what has been started, after its commit."""
        outcome: Future[None] = asyncio.get_running_loop().create_future()
        self._submitted[outcome] = started, time.monotonic()
        self._started.append((started, outcome))
        self._end_round_soon()
        try:
            await outcome
            return started.reply()
        finally:
            del self._submitted[outcome]

    def _in_thread(self, exchange: Exchange, environ: Environ) -> Future[Reply | None]:
        """Have Flask answer; raises Refused where too many wait."""
        call = Call(exchange, partial(self._replies.problem, INTERNAL, environ))
        run = partial(call.run, self._site.app, self._base | environ)
        self._threads.submit(exchange.owner, run)
        return call.reply

    async def _share(self, route: str, exchange: Exchange) -> Reply | None:
        """Return the reply of a probe that all its callers get for a while; one of them asks."""
        if route == LIVEZ:
            return self._replies.again(ALIVE, route, exchange.environ)
        since_s, shared = self._shared.get(route, (0.0, None))
        if shared is not None and (not shared.done() or time.monotonic() - since_s < SHARED_S):
            reply = await asyncio.shield(shared)
            return reply and self._replies.again(reply, route, exchange.environ)
        # It must suit all: as if asked with a GET that says nothing of its caller but its id.
        exchange.owner = None
        environ = {
            name: value
            for name, value in exchange.attempt().items()
            if name == "HTTP_X_REQUEST_ID" or not name.startswith(("HTTP_", "CONTENT_"))
        }
        asked = self._in_thread(exchange, environ | {"REQUEST_METHOD": "GET"})
        self._shared[route] = time.monotonic(), asked
        return await asyncio.shield(asked)

    async def _has_news(self, later: Any, since_s: float, exchange: Exchange) -> bool:
        """Wait for news without a thread; tell whether there is any in its time.

        Who hangs up, or sends no more, is not waited for.
        """
        loop = asyncio.get_running_loop()
        news: Future[Any] = loop.create_future()
        is_waiting = not self._stops.is_set()
        if not is_waiting or not later.subscribe(partial(soon, loop, partial(settle, news))):
            return False
        ends: list[Future[Any]] = [
            asyncio.ensure_future(each) for each in (exchange.ended.wait(), self._stops.wait())
        ]
        left_s = since_s + later.wait_s - time.monotonic()
        await asyncio.wait([news, *ends], timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        for each in ends:
            each.cancel()
        later.unsubscribe(again=news.done())
        return news.done()


class OwnReplies:
    """Replies of the server itself; they look like the application's, and are counted alike."""

    def __init__(
        self,
        clock: Clock,
        *,
        probes: Mapping[str, str] = {},
        token_paths: Collection[str] = (),
        count: Count | None = None,
    ) -> None:
        self._clock = clock
        self._probes = probes
        self._token_paths = token_paths
        self._count = count

    def probe(self, environ: Environ) -> str | None:
        """Return the route of a probe, which has the same reply for all; None for any other."""
        is_read = environ["REQUEST_METHOD"] in {"GET", "HEAD"}
        return self._probes.get(environ["REQUEST_URI"]) if is_read else None

    def again(self, reply: Reply, route: str, environ: Environ) -> Reply:
        """Return the reply to another caller for this one."""
        request_id = self._note(environ["REQUEST_METHOD"], route, reply.status, environ)
        headers = [each for each in reply.headers if each[0] != "X-Request-Id"]
        return reply._replace(headers=[*headers, ("X-Request-Id", request_id)])

    def problem(self, problem: Refused, environ: Environ) -> Reply:
        """Return the reply to a request that is not passed on; parts of it may be missing."""
        request_id = self._note("-", "-", problem.status, environ)
        if environ["REQUEST_URI"] in self._token_paths:
            body = msgspec.json.encode(oauth_body(problem))
        else:
            timestamp = format_time(self._clock())
            meta = ReplyMeta(timestamp=timestamp, response_time_ms=0.0, request_id=request_id)
            body = msgspec.json.encode(failure_body(problem, meta))
        own = [("X-Request-Id", request_id), NO_SNIFF, NO_STORE]
        return in_json(problem.status, body, [*own, *retry_after(problem).items()])

    def _note(self, method: str, route: str, status: int, environ: Environ) -> str:
        """Log and count a reply; return the id of its request."""
        request_id = request_id_of(environ.get("HTTP_X_REQUEST_ID", ""), uuid4)
        note_answer(self._count, method, route, status, duration_ms=0.0, request_id=request_id)
        return request_id


class Server:
    """Listens, and has requests answered until it is stopped; then ends within `finish_s`."""

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        gateway: Gateway,
        settings: Settings,
        finish_s: float,
        shown: Callable[[int], object] = int,
    ) -> None:
        """`shown` is given the number of open connections, each time that it changes."""
        self.addresses = [each.getsockname() for each in listeners]
        self._listeners, self._gateway, self._finish_s = listeners, gateway, finish_s
        self._load = Load(shown)
        limits = (settings.request_read_s, settings.keep_alive_s)
        self._connect = partial(Connection, gateway, self._load, *limits)

    def run(self, stop: Event, on_second: Callable[[], object] = lambda: None) -> None:
        """Serve until `stop` is set; then finish what has begun. The loop calls `on_second`.

        The loop has a thread of its own, because in the main thread it would take over signals.
        """
        sys.setswitchinterval(SWITCH_S)
        try:
            with ThreadPoolExecutor(1, "loop") as thread:
                thread.submit(self._run, stop, on_second).result()
        finally:
            self._gateway.stop()

    def _run(self, stop: Event, on_second: Callable[[], object]) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.get_loop().set_exception_handler(_log_failure)
            runner.run(self._serve(stop, on_second))

    async def _serve(self, stop: Event, on_second: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        accepting = [
            await loop.create_server(self._connect, sock=each, backlog=ACCEPT_MAX)
            for each in self._listeners
        ]
        looks = 0
        while not stop.is_set():
            if looks % LOOKS_A_SECOND == 0:
                on_second()
                self._gateway.expire()
            looks += 1
            await asyncio.sleep(1 / LOOKS_A_SECOND)
        for each in accepting:
            each.close()
        self._gateway.end_waits()
        for connection in [*self._load.connections]:
            connection.shutdown()
        if self._load.tasks:  # The runner cancels those that are left then.
            await asyncio.wait(self._load.tasks, timeout=self._finish_s)


def bind(host: str, port: int, *, shared: bool = False) -> list[socket.socket]:
    """Return sockets for every address of a host; they do not listen yet.

    Of processes that all bind a port as `shared`, the kernel gives each connection to one.
    """
    opened: list[socket.socket] = []
    with ExitStack() as failed, _port_of(host, port):
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        addresses = dict.fromkeys((family, address) for family, *_, address in found)
        for family, address in addresses:
            opened.append(failed.enter_context(socket.socket(family)))
            opened[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
            if family == socket.AF_INET6 and len(addresses) > 1:
                opened[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened[-1].bind(address)
            opened[-1].settimeout(0)
        failed.pop_all()
    return opened


def listen(bound: list[socket.socket], host: str, port: int) -> None:
    """Start to listen; another process may have taken the port."""
    with _port_of(host, port):
        for each in bound:
            each.listen(ACCEPT_MAX)


@contextmanager
def _port_of(host: str, port: int) -> Iterator[None]:
    """Raise WrongSetting for what the system says of a port."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such address"
        text = f"cannot listen on HOST {host} PORT {port}: {reason}"
        raise WrongSetting(text) from error


def _log_failure(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, Exception) and not isinstance(error, OSError):
        log_place(logger, error)
