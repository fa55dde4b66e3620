"""A wake-up call inside one process: whoever waits learns that the log has grown."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from threading import Condition, Event
from uuid import UUID


class Signal:
    """Counts calls, so that a call between looking and waiting is never missed.

    Followers hear every call; who waits for one stream hears those that may be about it.
    """

    def __init__(self) -> None:
        self._condition = Condition()
        self._count = 0
        self._watched: dict[UUID | str, set[Event]] = defaultdict(set)

    @property
    def count(self) -> int:
        """How many calls there have been; pass it to `wait`."""
        return self._count

    @property
    def is_watched(self) -> bool:
        """Tell whether anybody waits for one stream."""
        return bool(self._watched)

    def call(self, streams: Collection[UUID | str] | None = None) -> None:
        """Wake followers, and who watches one of these streams; None: any stream may have grown."""
        with self._condition:
            self._count += 1
            self._condition.notify_all()
            for stream in self._watched if streams is None else streams:
                for event in self._watched.get(stream, ()):
                    event.set()

    def wait(self, seen: int, timeout_s: float) -> bool:
        """Wait, at most so long, for a call after the `seen` one; tell whether there was one."""
        with self._condition:
            return self._condition.wait_for(lambda: self._count != seen, timeout_s)

    @contextmanager
    def watching(self, stream: UUID) -> Iterator[Event]:
        """Lend an event that is set when a stream may have grown; clear it before looking."""
        event = Event()
        with self._condition:
            self._watched[stream].add(event)
        try:
            yield event
        finally:
            with self._condition:
                self._watched[stream].discard(event)
                if not self._watched[stream]:
                    del self._watched[stream]
