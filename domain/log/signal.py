"""A wake-up call within one process: waiting threads learn that the log has grown."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from threading import Condition, Event, Lock
from uuid import UUID

# Stream ids as 32 hexadecimal digits. Processes send them to each other in this form; parsing
# those of every commit as UUIDs would cost more than all the rest.
Streams = Collection[str]


class Signal:
    """Counts calls, so that no call between looking and waiting is missed.

    Followers hear every call; a thread that waits for one stream hears those that may concern it.
    """

    def __init__(self) -> None:
        self._lock = Lock()  # Entered by itself, because `Condition` does that in Python.
        self._condition = Condition(self._lock)
        self.count = 0  # Of the calls so far, to be given to `wait`.
        self._watched: dict[str, set[Event]] = defaultdict(set)
        # Whether this process hears at once of other processes' commits, with their streams.
        self.hears_others = False
        # Called before anybody is woken; must be quick and must not raise.
        self.observer: Callable[[Streams | None], None] = lambda _: None

    def call(self, streams: Streams | None = None) -> None:
        """Wake followers and those who watch one of these streams; None: any may have grown."""
        self.observer(streams)
        with self._lock:
            self.count += 1
            self._condition.notify_all()
            for stream in self._watched if streams is None else streams:
                for event in self._watched.get(stream, ()):
                    event.set()

    def wait(self, seen: int, timeout_s: float) -> bool:
        """Wait for a call after the `seen` ones, at most `timeout_s`; tell if there was one."""
        with self._condition:
            return self._condition.wait_for(lambda: self.count != seen, timeout_s)

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
    return stream.hex if isinstance(stream, UUID) else stream
