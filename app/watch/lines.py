"""Lines on their way out of this process, of which none makes anybody wait.

Their reader may stop, and a full pipe takes nothing more. So they go through a bounded queue with a
thread of its own; what does not fit is dropped and counted.
"""

import logging
import os
import time
from collections import deque
from collections.abc import Callable
from select import PIPE_BUF
from sys import getsizeof
from threading import Condition, Thread
from typing import IO, Any

BYTES_MAX = 4 * 1024**2  # Of memory: some 10,000 lines.
WAIT_S = 1.0  # Of the start line of a process, of fatal ones, and of its end.
PACE_S = 0.01  # Lines are written together, because waking the thread for each one is expensive.

logger = logging.getLogger(__name__)


def _count(_: int, /) -> object:
    """Count lost lines; `count_dropped` replaces it."""


def count_dropped(count: Callable[[int], object]) -> None:
    """Have `count` called with how many lines of this process were lost, each time."""
    global _count  # noqa: PLW0603  # Its standard error is global to a process, too.
    _count = count


def printable(text: str) -> str:
    """Escape control characters, bidirectional marks and the like; line ends stay."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


class Lines:
    """A text stream like `inner`, which a thread writes to."""

    def __init__(self, inner: IO[str]) -> None:
        self._inner = inner
        # Written past Python's buffer, whose lock a thread that hangs would hold at the end.
        self._file = inner.fileno()
        self._texts: deque[str] = deque()
        self._bytes = 0
        self._changed = Condition()
        self._is_idle = True
        self._dropped = 0
        Thread(target=self._run, name="lines", daemon=True).start()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, text: str | bytes, *, must: bool = False) -> int:
        """Queue a text. One that `must` be written replaces the oldest if need be.

        It is also waited for, at most WAIT_S.
        """
        if isinstance(text, bytes):  # So click finds out that this is no binary stream.
            raise TypeError
        size = getsizeof(text)
        with self._changed:
            while self._bytes + size > BYTES_MAX and (self._texts or not must):
                self._drop(1)
                if not must:
                    return len(text)
                self._bytes -= getsizeof(self._texts.popleft())
            self._texts.append(text)
            self._bytes += size
            if self._is_idle:
                self._changed.notify_all()
        if must:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Wait until all is written, at most WAIT_S."""
        # Python does this at the end of a process, when a thread that it has stopped may have it.
        if self._changed.acquire(timeout=WAIT_S):
            try:
                self._changed.wait_for(lambda: self._is_idle and not self._texts, WAIT_S)
            finally:
                self._changed.release()

    def _drop(self, count: int) -> None:
        self._dropped += count
        _count(count)

    def _run(self) -> None:
        while True:
            self._wait()
            data = self._next_chunk()
            try:
                self._write(data)
            except OSError:  # The reader is gone, or the disk is full.
                with self._changed:
                    self._drop(data.count(b"\n"))
                continue
            if self._dropped and not self._texts:
                with self._changed:
                    dropped, self._dropped = self._dropped, 0
                logger.warning("%d log lines were dropped: they were not read in time", dropped)

    def _wait(self) -> None:
        """Wait for a text, then a moment for those that follow."""
        with self._changed:
            if self._texts:
                return
            self._is_idle = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._texts)
            self._is_idle = False
        time.sleep(PACE_S)

    def _next_chunk(self) -> bytes:
        """Return as many texts as reach a pipe in one piece, at least one."""
        data = b""
        with self._changed:
            while self._texts:
                text = printable(self._texts[0]).encode("utf-8", "backslashreplace")
                if data and len(data) + len(text) > PIPE_BUF:
                    break
                data += text
                self._bytes -= getsizeof(self._texts.popleft())
        return data

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._file, data) :]
            except BlockingIOError:  # Another process has made the file so.
                time.sleep(PACE_S)
