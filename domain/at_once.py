"""Marks a thread that must never wait: not for the database, the network or its turn.

Code that would have to wait raises WouldWait before it has any effect; then another thread does the
whole work again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local


class WouldWait(BaseException):
    """Raised where a thread that must not wait would have to; never handle it as an error."""


class NeedsThread(WouldWait):
    """Raised where the same would come of it however long it waited: a thread has to do it."""


class _Thread(local):
    must_not_wait = False


_thread = _Thread()


@contextmanager
def at_once() -> Iterator[None]:
    """Forbid waiting in this block."""
    _thread.must_not_wait = True
    try:
        yield
    finally:
        _thread.must_not_wait = False


def may_wait() -> None:
    """Declare that the next code may wait; raises WouldWait in a thread that must not wait."""
    if _thread.must_not_wait:
        raise WouldWait
