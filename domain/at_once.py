"""What a thread that must never wait may do: all that needs no database, no network, no turn.

Where it would have to wait, WouldWait says so before anything has happened; another thread then
does the whole again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local


class WouldWait(BaseException):
    """Raised where a thread that must not wait would have to. Nobody may take it for an error."""


class _Thread(local):
    must_not_wait = False


_thread = _Thread()


@contextmanager
def at_once() -> Iterator[None]:
    """Let nothing in this block wait."""
    _thread.must_not_wait = True
    try:
        yield
    finally:
        _thread.must_not_wait = False


def may_wait() -> None:
    """Say that what follows may take its time; raises WouldWait where it must not."""
    if _thread.must_not_wait:
        raise WouldWait
