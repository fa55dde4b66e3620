"""What requests on the loop remember is read anew before it ends, by a thread of its own.

Without it the next request of every caller would go to a thread of Flask each second.
"""

import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

PAUSE_S = 0.1  # The least time between two readings of the same memory.
ASKED_MAX = 10_000

Read = Callable[[], object]


class Renewals:
    """The thread, and when each memory was asked for last."""

    def __init__(self) -> None:
        self._due = SimpleQueue[Read | None]()
        self._asked: dict[Hashable, float] = {}
        Thread(target=self._run, name="renewals", daemon=True).start()

    def ask(self, key: Hashable, read: Read) -> None:
        """Have a memory read anew; only the loop may call this."""
        now_s = time.monotonic()
        if now_s - self._asked.get(key, 0.0) < PAUSE_S:
            return
        if len(self._asked) >= ASKED_MAX:
            self._asked.clear()
        self._asked[key] = now_s
        self._due.put(read)

    def stop(self) -> None:
        """End the thread after its present reading."""
        self._due.put(None)

    def _run(self) -> None:
        while (read := self._due.get()) is not None:
            with suppress(Exception):  # The request that needs it meets the same error.
                read()
