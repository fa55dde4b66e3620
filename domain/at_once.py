"""Waiting: one thread must never do it, another lets others compute meanwhile.

Where a thread must not wait (for the database, the network or its turn), code that would have to
raises WouldWait before it has any effect; then another thread does the whole work again.
"""

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import local

Read = Callable[[], object]


class WouldWait(BaseException):
    """Raised where a thread that must not wait would have to; never handle it as an error.

    `read` is what another thread may do first, so that this one need not wait: it reads what `key`
    names, and remembers it. None: nothing of the kind helps.
    """

    def __init__(self, key: Hashable = None, read: Read | None = None) -> None:
        super().__init__()
        self.key = key
        self.read = read


class NeedsThread(WouldWait):
    """Raised where the same would come of it however long it waited: a thread has to do it."""


Renew = Callable[[Hashable, Read], object]


Rest = Callable[[], AbstractContextManager[object]]


class _Thread(local):
    must_not_wait = False
    renew: Renew | None = None
    rest: Rest = nullcontext


_thread = _Thread()


@contextmanager
def at_once(renew: Renew | None = None) -> Iterator[None]:
    """Forbid waiting in this block; what `renew_soon` is given there goes to `renew`."""
    _thread.must_not_wait, _thread.renew = True, renew
    try:
        yield
    finally:
        _thread.must_not_wait, _thread.renew = False, None


def renew_soon(key: Hashable, read: Read) -> None:
    """Have another thread read anew what this one remembers; it must never wait for that.

    Call it shortly before the memory ends, as often as you like: `key` names the memory.
    """
    if _thread.renew is not None:
        _thread.renew(key, read)


def may_wait(key: Hashable = None, read: Read | None = None) -> None:
    """Declare that the next code may wait; raises WouldWait in a thread that must not wait."""
    if _thread.must_not_wait:
        raise WouldWait(key, read)


def let_others_on(rest: Rest) -> None:
    """Have this thread enter `rest` while it waits for long, so that others compute meanwhile."""
    _thread.rest = rest


def resting() -> AbstractContextManager[object]:
    """Return a block that only waits: for another thread's commit, for news, for a provider."""
    return _thread.rest()


def sleep_s(seconds: float) -> None:
    """Sleep, and let others compute meanwhile."""
    with resting():
        time.sleep(seconds)
