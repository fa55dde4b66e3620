"""A wake-up call inside one process: whoever waits learns that the log has grown."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from threading import Condition, Event
from uuid import UUID

# The ids of streams as 32 digits: that is how they are told from process to process, and making
# UUIDs of those of every commit would cost more than all the rest.
Streams = Collection[str]


class Signal:
    """Counts calls, so that a call between looking and waiting is never missed.

    Followers hear every call; who waits for one stream hears those that may be about it.
    """

    def __init__(self) -> None:
        self._condition = Condition()
        self._count = 0
        self._watched: dict[str, set[Event]] = defaultdict(set)
        # Whether commits of other processes are told here at once, with their streams.
        self.hears_others = False
        # Hears of each call before anybody is woken; must be quick, and must not raise.
        self.observer: Callable[[Streams | None], None] = _unheard

    @property
    def count(self) -> int:
        """How many calls there have been; pass it to `wait`."""
        return self._count

    @property
    def is_watched(self) -> bool:
        """Tell whether anybody waits for one stream."""
        return bool(self._watched)

    def call(self, streams: Streams | None = None) -> None:
        """Wake followers, and who watches one of these streams; None: any stream may have grown."""
        self.observer(streams)
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
        event, digits = Event(), stream.hex
        with self._condition:
            self._watched[digits].add(event)
        try:
            yield event
        finally:
            with self._condition:
                self._watched[digits].discard(event)
                if not self._watched[digits]:
                    del self._watched[digits]


def digits_of(stream: UUID | str) -> str:
    """Return the id of a stream as it is told."""
    return stream.hex if isinstance(stream, UUID) else stream


def _unheard(_: Streams | None) -> None:
    """Nobody remembers anything."""
