"""The threads beside the loop: calls queue for them by owner, and few compute at once.

Threads that all compute only hand the interpreter to each other: with 80 of them 64 readers cost
twice the processor time, and wait three times as long, as with 16 (docs/speed.md). A thread that
rests, because it waits for a commit or a network, lets another call begin.
"""

import asyncio
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any

from app.settings import HTTP_THREADS
from domain.blocking import Read, on_blocking
from domain.errors import Refused
from domain.limiter import Limiter, Owner, share_of

COMPUTING_MAX = 16
OF_ONE_MAX = COMPUTING_MAX // 4
# While nobody else comes. The rest is left to who comes next: calls that wait, but may rest no
# more, end only when what they wait for comes.
ALONE_MAX = COMPUTING_MAX - OF_ONE_MAX
BLOCKED_MAX = HTTP_THREADS - COMPUTING_MAX  # So each call that has a slot has a thread.
WAITING_MAX = 1024  # More would wait longer than any client does, so they are refused at once.
# Memories that end soon are read together: after a pause each reading by itself takes five times as
# long, because its code has left the caches of the processor. None is read more often.
TOGETHER_S = 0.1
# Who waits longer for a first reading goes to a thread of Flask, and so does who finds so many.
FIRST_S = 0.25
FIRST_MAX = 256

Run = Callable[[], object]  # It raises nothing.


class Threads:
    """Runs calls, of each owner in turn; while others come, an owner has a quarter of the slots."""

    def __init__(self) -> None:
        self._computing = Limiter(
            COMPUTING_MAX,
            OF_ONE_MAX,
            alone=ALONE_MAX,
            places=WAITING_MAX,
            beyond_share="Too many of your requests wait to be answered; try again.",
        )
        self._blocked = Limiter(BLOCKED_MAX, share_of(BLOCKED_MAX))
        self._ready: SimpleQueue[tuple[Owner, Run] | None] = SimpleQueue()
        for number in range(HTTP_THREADS):
            Thread(target=self._work, name=f"http-{number}", daemon=True).start()

    def submit(self, owner: Owner, run: Run) -> None:
        """Have a call run. Raises RateLimited or ServiceUnavailable where too many wait."""
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
            on_blocking(partial(self._lend_slot, owner))
            run()
            del call, run  # A waiting thread must not keep its last request in memory.
            self._computing.leave(owner)

    @contextmanager
    def _lend_slot(self, owner: Owner) -> Iterator[None]:
        """Lend the slot of a thread to another call, unless too many of the owner rest already."""
        with ExitStack() as stack:
            with suppress(Refused):
                stack.enter_context(self._blocked.slot(owner))
                self._computing.leave(owner)
                stack.callback(self._computing.reacquire, owner)
            yield


class Renewals:
    """A thread that reads what requests on the loop remember: first, and before it ends.

    Without it the next request of every caller would go to a thread of Flask each second. Only the
    loop may call it.
    """

    def __init__(self) -> None:
        self._due = SimpleQueue[Collection[Read] | None]()
        self._soon: dict[Hashable, Read] = {}
        self._first: dict[Hashable, Future[None]] = {}
        Thread(target=self._run, name="renewals", daemon=True).start()

    def request(self, key: Hashable, read: Read) -> None:
        """Have a memory read anew."""
        if not self._soon:
            asyncio.get_running_loop().call_later(TOGETHER_S, self._hand_over)
        self._soon[key] = read

    async def read_first(self, key: Hashable, read: Read) -> bool:
        """Wait until a memory has been read, once for all who wait; False: not in time."""
        reading = self._first.get(key)
        if reading is None:
            if len(self._first) >= FIRST_MAX:
                return False
            loop = asyncio.get_running_loop()
            reading = self._first[key] = loop.create_future()
            self._due.put([read, partial(soon, loop, partial(self._end, key))])
        await asyncio.wait([reading], timeout=FIRST_S)
        return reading.done()

    def stop(self) -> None:
        """End the thread after its present reading."""
        self._due.put(None)

    def _hand_over(self) -> None:
        due, self._soon = self._soon, {}
        self._due.put(due.values())

    def _end(self, key: Hashable) -> None:
        self._first.pop(key).set_result(None)

    def _run(self) -> None:
        while (due := self._due.get()) is not None:
            for read in due:
                with suppress(Exception):  # The request that needs it meets the same error.
                    read()


def soon(loop: AbstractEventLoop, call: Callable[[], Any]) -> None:
    """Have the loop call something, from any thread."""
    with suppress(RuntimeError):  # After the end of the loop nobody listens.
        loop.call_soon_threadsafe(call)
