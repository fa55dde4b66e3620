"""Resolves the names of servers, which has no time-out of its own, in threads."""

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Lock

from app.watch.gauges import answer_of, in_thread

# Names resolved at the same time. A name that hangs holds its thread until the system gives up,
# longer than the attempt to send; so this is more than there are threads that send.
NAMES_MAX = 256

# Returns the addresses of a name; None if none are known by a moment of the monotonic clock.
Resolve = Callable[[str, float], Sequence[str] | None]


class Names:
    """Resolves names with a time limit. Callers with the same name wait for the same thread."""

    def __init__(self, resolve: Callable[[str], Sequence[str]] | None = None) -> None:
        self._resolve = resolve or _addresses
        self._pending = dict[str, Future[Sequence[str]]]()
        self._lock = Lock()

    def __call__(self, name: str, ends_s: float) -> Sequence[str] | None:
        """Return the addresses of a name; None if it has none, or none are known by `ends_s`."""
        with self._lock:
            answer = self._pending.get(name)
            if answer is None:
                if len(self._pending) >= NAMES_MAX:
                    return None
                answer = self._pending[name] = in_thread("resolves", partial(self._run, name))
        return answer_of(answer, ends_s)

    def _run(self, name: str) -> Sequence[str]:
        try:
            return self._resolve(name)
        finally:
            with self._lock:
                del self._pending[name]


def _addresses(name: str) -> Sequence[str]:
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


addresses_of = Names()  # Of providers, whose names operators choose.
