"""The threads beside the loop: they call Flask, and one reads what the loop remembers.

Calls queue by owner, and few compute at once. Threads that all compute only hand the interpreter to
each other: with 80 of them 64 readers cost twice the processor time, and wait three times as long,
as with 16 (docs/speed.md). A thread that rests, because it waits for a commit or a network, lets
another call begin.
"""

import asyncio
import logging
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any
from wsgiref.types import WSGIApplication

from app.http.edge.replies import LATER
from app.http.server.connection import Environ, Exchange, Reply
from app.settings import HTTP_THREADS
from app.watch.trouble import log_place
from domain.at_once import Read, let_others_on, resting
from domain.errors import Refused
from domain.limiter import Limiter, Owner, share_of

COMPUTING_MAX = 16
OF_ONE_MAX = COMPUTING_MAX // 4
# While nobody else comes. The rest is left to who comes next: calls that wait, but may rest no
# more, end only when what they wait for comes.
ALONE_MAX = COMPUTING_MAX - OF_ONE_MAX
RESTING_MAX = HTTP_THREADS - COMPUTING_MAX  # So each call that has a slot has a thread.
WAITING_MAX = 1024  # More would wait longer than any client does, so they are refused at once.
BEYOND_SHARE = "Too many of your requests wait to be answered; try again."
# A reply in parts holds its thread to the end, so a slow reader is cut off after this time.
STREAM_S = 600.0

# Memories that end soon are read together: after a pause each reading by itself takes five times as
# long, because its code has left the caches of the processor.
TOGETHER_S = 0.1
# Who waits longer for a first reading goes to a thread of Flask, and so does who finds so many.
FIRST_S = 0.25
FIRST_MAX = 256

logger = logging.getLogger(__name__)


class Threads:
    """Runs calls, of each owner in turn; while others come, an owner has a quarter of the slots."""

    def __init__(self) -> None:
        self._computing = Limiter(
            COMPUTING_MAX,
            OF_ONE_MAX,
            alone=ALONE_MAX,
            places=WAITING_MAX,
            beyond_share=BEYOND_SHARE,
        )
        self._resting = Limiter(RESTING_MAX, share_of(RESTING_MAX))
        self._ready: SimpleQueue[tuple[Owner, Callable[[], object]] | None] = SimpleQueue()
        for number in range(HTTP_THREADS):
            Thread(target=self._work, name=f"http-{number}", daemon=True).start()

    def submit(self, owner: Owner, run: Callable[[], object]) -> None:
        """Have `run` called, which raises nothing. Raises Refused where too many wait."""
        go = partial(self._ready.put, (owner, run))
        if self._computing.enter(owner, go):
            go()

    def stop(self) -> None:
        """End the threads, each after its present call."""
        for _ in range(HTTP_THREADS):
            self._ready.put(None)

    def _work(self) -> None:
        while (call := self._ready.get()) is not None:
            owner, run = call
            let_others_on(partial(self._rest, owner))
            run()
            del call, run  # A waiting thread must not keep its last request in memory.
            self._computing.leave(owner)

    @contextmanager
    def _rest(self, owner: Owner) -> Iterator[None]:
        """Lend the slot of a thread to another call, unless too many of the owner rest already."""
        with ExitStack() as stack:
            with suppress(Refused):
                stack.enter_context(self._resting.slot(owner))
                self._computing.leave(owner)
                stack.callback(self._computing.take, owner)
            yield


class Call:
    """One call of a WSGI application (PEP 3333), in a thread.

    `reply` is None when the reply has been sent in parts; one that fails in the midst is cut short.
    """

    def __init__(self, exchange: Exchange, failed: Callable[[], Reply]) -> None:
        self.reply: Future[Reply | None] = asyncio.get_running_loop().create_future()
        self._exchange, self._failed = exchange, failed
        self._status, self._headers = 0, list[tuple[str, str]]()
        self._until_s = 0.0  # When a reply in parts must end; 0: none has begun.

    def run(self, app: WSGIApplication, environ: Environ) -> None:
        """Call the application, and settle `reply` whatever happens."""
        reply: Reply | None = None
        try:
            reply = self._call(app, environ)
        except BaseException as error:  # noqa: BLE001  # The thread goes on to the next request.
            if not isinstance(error, OSError):  # The client has gone, or is too slow.
                log_place(logger, error)
            if not self._until_s:
                reply = self._failed()
        soon(self.reply.get_loop(), partial(settle, self.reply, reply))

    def _call(self, app: WSGIApplication, environ: Environ) -> Reply | None:
        blocks = app(environ, self._start)
        try:
            rest = filter(None, blocks)
            block = next(rest, b"")  # Only now must the application have called `_start`.
            bare = environ["REQUEST_METHOD"] == "HEAD" or self._status in {204, 304}
            if bare or any(name.lower() == "content-length" for name, _ in self._headers):
                body = b"".join([block, *rest])
                return Reply(self._status, self._headers, body, environ.get(LATER))
            self._stream(block, rest)
            return None
        finally:
            if (close := getattr(blocks, "close", None)) is not None:
                close()

    def _start(self, status: str, headers: list[tuple[str, str]], _: Any = None, /) -> Any:
        self._status, self._headers = int(status[:3]), headers

    def _stream(self, block: bytes, rest: Iterator[bytes]) -> None:
        self._until_s = time.monotonic() + STREAM_S
        self._wait(self._exchange.start(self._status, self._headers))
        while block:
            self._wait(self._exchange.send(block))
            block = next(rest, b"")
        self._wait(self._exchange.end())

    def _wait(self, sending: Any) -> None:
        """Wait for the loop; OSError when the client has gone, or takes too long altogether."""
        sent = asyncio.run_coroutine_threadsafe(sending, self.reply.get_loop())
        try:
            with resting():
                sent.result(max(0.0, self._until_s - time.monotonic()))
        except TimeoutError:
            sent.cancel()
            raise


class Renewals:
    """One thread reads what the loop remembers: first, and before it ends. Only the loop asks.

    Without it the next request of every caller would go to a thread of Flask each second.
    """

    def __init__(self) -> None:
        self._due = SimpleQueue[Sequence[Read] | None]()
        self._together: dict[Hashable, Read] = {}
        self._first: dict[Hashable, Future[None]] = {}
        Thread(target=self._run, name="renewals", daemon=True).start()

    def ask(self, key: Hashable, read: Read) -> None:
        """Have a memory read anew."""
        if not self._together:
            asyncio.get_running_loop().call_later(TOGETHER_S, self._hand_over)
        self._together[key] = read

    async def read_first(self, key: Hashable, read: Read) -> bool:
        """Wait until a memory has been read, once for all who wait; False: not in time."""
        if (reading := self._first.get(key)) is None:
            if len(self._first) >= FIRST_MAX:
                return False
            reading = self._first[key] = asyncio.get_running_loop().create_future()
            reading.add_done_callback(lambda _: self._first.pop(key))
            end = partial(soon, reading.get_loop(), partial(settle, reading))
            self._due.put([read, end])
        await asyncio.wait([reading], timeout=FIRST_S)
        return reading.done()

    def stop(self) -> None:
        """End the thread after its present reading."""
        self._due.put(None)

    def _hand_over(self) -> None:
        self._due.put([*self._together.values()])
        self._together = {}

    def _run(self) -> None:
        while (due := self._due.get()) is not None:
            for read in due:
                with suppress(Exception):  # The request that needs it meets the same error.
                    read()


def soon(loop: AbstractEventLoop, call: Callable[[], object]) -> None:
    """Have the loop call, from any thread."""
    with suppress(RuntimeError):  # After the end of the loop nobody listens.
        loop.call_soon_threadsafe(call)


def settle(future: Future[Any], result: object = None) -> None:
    """Give a future its result, unless nobody waits for it any more."""
    if not future.done():
        future.set_result(result)
