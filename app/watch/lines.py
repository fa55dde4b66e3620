"""Lines on their way out of this process, of which none makes anybody wait.

Their reader may stop, and a full pipe takes nothing more. So they go through a bounded queue with a
thread of its own; what does not fit is dropped and counted.
"""

import logging
import os
import sys
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from select import PIPE_BUF
from threading import Event, Thread
from typing import IO, Any

CHARS_MAX = 4_000_000  # So many wait if all are alike, and some 40 MB however long they become.
USUAL_CHARS = 400  # A shorter line takes a place of as many.
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
        self._texts: SimpleQueue[str | Event] = SimpleQueue()  # An event is set when it is reached.
        self._dropped = 0
        Thread(target=self._run, name="lines", daemon=True).start()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, text: str | bytes, *, must: bool = False) -> int:
        """Queue a text; one that `must` be written always, and it is waited for, at most WAIT_S."""
        if isinstance(text, bytes):  # So click finds out that this is no binary stream.
            raise TypeError
        if must or self._texts.qsize() * max(len(text), USUAL_CHARS) < CHARS_MAX:
            self._texts.put(text)
        else:
            self._drop(1)
        if must:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Wait until all is written, at most WAIT_S."""
        if not sys.is_finalizing():  # Python has stopped the thread by then.
            reached = Event()
            self._texts.put(reached)
            reached.wait(WAIT_S)

    def _drop(self, count: int) -> None:
        self._dropped += count
        _count(count)

    def _run(self) -> None:
        data = b""  # As many texts as reach a pipe in one piece, at least one.
        while True:
            try:
                item = self._texts.get_nowait()
            except Empty:
                self._write(data)
                data = b""
                item = self._texts.get()
                time.sleep(PACE_S)
            text = b""
            if isinstance(item, str):
                text = printable(item).encode("utf-8", "backslashreplace")
            if not text or len(data) + len(text) > PIPE_BUF:
                self._write(data)
                data = b""
            data += text
            if isinstance(item, Event):
                item.set()

    def _write(self, data: bytes) -> None:
        left = data
        while left:
            try:
                left = left[os.write(self._file, left) :]
            except BlockingIOError:  # Another process has made the file so.
                time.sleep(PACE_S)
            except OSError:  # The reader is gone, or the disk is full.
                self._drop(data.count(b"\n"))
                return
        if data and self._dropped and self._texts.empty():
            dropped, self._dropped = self._dropped, 0
            logger.warning("%d log lines were dropped: they were not read in time", dropped)
