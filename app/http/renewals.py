"""What requests on the loop remember is read by a thread of its own: first, and before it ends.

Without it the next request of every caller would go to a thread of Flask each second.
"""

import asyncio
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread

from domain.at_once import Read

PAUSE_S = 0.1  # The least time between two readings of the same memory.
# Memories that end soon are read together: after a pause each reading by itself takes five times as
# long, because its code has left the caches of the processor.
TOGETHER_S = 0.1
ASKED_MAX = 10_000
# Who waits longer for a first reading goes to a thread of Flask, and so does who finds so many.
FIRST_S = 0.25
FIRST_MAX = 256


class Renewals:
    """The thread, and when each memory was asked for last. Only the loop may call it."""

    def __init__(self) -> None:
        self._due = SimpleQueue[Sequence[Read] | None]()
        self._soon: list[Read] = []
        self._asked: dict[Hashable, float] = {}
        self._first: dict[Hashable, Future[None]] = {}
        Thread(target=self._run, name="renewals", daemon=True).start()

    def ask(self, key: Hashable, read: Read) -> None:
        """Have a memory read anew."""
        now_s = time.monotonic()
        if now_s - self._asked.get(key, 0.0) < PAUSE_S:
            return
        if len(self._asked) >= ASKED_MAX:
            self._asked.clear()
        self._asked[key] = now_s
        if not self._soon:
            asyncio.get_running_loop().call_later(TOGETHER_S, self._hand_over)
        self._soon.append(read)

    async def read_first(self, key: Hashable, read: Read) -> bool:
        """Wait until a memory has been read, once for all who wait; False: not in time."""
        reading = self._first.get(key)
        if reading is None:
            if len(self._first) >= FIRST_MAX:
                return False
            loop = asyncio.get_running_loop()
            reading = self._first[key] = loop.create_future()
            self._due.put([partial(self._read, key, read, loop)])
        await asyncio.wait([reading], timeout=FIRST_S)
        return reading.done()

    def _hand_over(self) -> None:
        soon, self._soon = self._soon, []
        self._due.put(soon)

    def _read(self, key: Hashable, read: Read, loop: AbstractEventLoop) -> None:
        try:
            read()
        finally:
            with suppress(RuntimeError):  # After the end of the loop nobody waits.
                loop.call_soon_threadsafe(self._end, key)

    def _end(self, key: Hashable) -> None:
        self._first.pop(key).set_result(None)

    def stop(self) -> None:
        """End the thread after its present reading."""
        self._due.put(None)

    def _run(self) -> None:
        while (due := self._due.get()) is not None:
            for read in due:
                with suppress(Exception):  # The request that needs it meets the same error.
                    read()
