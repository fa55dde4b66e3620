"""Threads that begin at the same moment."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.installation import PATIENCE_S


def together(*calls: Callable[[], object]) -> None:
    """Make calls at the same moment, each by a thread of its own; raises what one of them does."""
    start = Barrier(len(calls), timeout=PATIENCE_S)

    def begin(call: Callable[[], object]) -> None:
        start.wait()
        call()

    with ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(begin, calls))
