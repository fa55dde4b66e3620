"""Blocking calls: one thread must make none, another lets others compute during its own.

Where a thread must not wait (for the database, the network or its turn), code that would have to
raises WouldBlock before it has any effect; then another thread does the whole work again.
"""

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import local

Read = Callable[[], object]


class WouldBlock(BaseException):
    """Raised where a thread that must not wait would have to; never handle it as an error.

    `read` is what another thread may do first, so that this one need not wait: it reads what `key`
    names, and remembers it. None: nothing of the kind helps.
    """

    def __init__(self, key: Hashable = None, read: Read | None = None) -> None:
        super().__init__()
        self.key = key
        self.read = read


Renew = Callable[[Hashable, Read], object]


Blocking = Callable[[], AbstractContextManager[object]]


class _Thread(local):
    must_not_block = False
    renew: Renew | None = None
    block: Blocking = nullcontext


_thread = _Thread()


@contextmanager
def forbid_blocking(renew: Renew | None = None) -> Iterator[None]:
    """Forbid waiting in this block; what `renew_soon` is given there goes to `renew`."""
    _thread.must_not_block, _thread.renew = True, renew
    try:
        yield
    finally:
        _thread.must_not_block, _thread.renew = False, None


def renew_soon(key: Hashable, read: Read) -> None:
    """Have another thread read anew what this one remembers; it must never wait for that.

    Call it shortly before the memory ends, as often as you like: `key` names the memory.
    """
    if _thread.renew is not None:
        _thread.renew(key, read)


def may_block(key: Hashable = None, read: Read | None = None) -> None:
    """Declare that the next code may wait; raises WouldBlock in a thread that must not wait."""
    if _thread.must_not_block:
        raise WouldBlock(key, read)


def on_blocking(block: Blocking) -> None:
    """Have this thread enter `block` while it waits for long, so that others compute meanwhile."""
    _thread.block = block


def blocking() -> AbstractContextManager[object]:
    """Return a block that only waits: for another thread's commit, for news, for a provider."""
    return _thread.block()


def sleep_s(seconds: float) -> None:
    """Sleep, and let others compute meanwhile."""
    with blocking():
        time.sleep(seconds)
