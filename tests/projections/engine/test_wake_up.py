"""Whatever process appends, every thread that waits for the log to grow is woken."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from app.adapters.sqlite.waker import SqliteWaker
from tests.installation import PATIENCE_S, Installation, Process, wait_until
from tests.projections.looking import register

SOON_S = PATIENCE_S / 2  # Far above what a wake-up takes, below what a waiter would wait.


def seconds(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def warmed(process: Process) -> SqliteWaker:
    """Return a waker that listens, which it begins with a call, and has seen everything so far."""
    waker = process.waker
    wait_until(lambda: waker.wait(0, 0.05))
    while waker.wait(waker.count, 0.05):
        pass
    return waker


def test_a_waiter_is_woken_in_its_own_process(process: Process) -> None:
    waker = warmed(process)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(waker.wait, waker.count, PATIENCE_S)
        assert seconds(lambda: register(process, 1)) < SOON_S
        assert seconds(waiting.result) < SOON_S
    assert waiting.result()


def test_every_waiter_is_woken_from_another_process(
    installation: Installation, process: Process
) -> None:
    waker, other = warmed(process), installation.process()
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(waker.wait, waker.count, 2 * SOON_S) for _ in range(4)]
        register(other, 1)
        woken = [each.result() for each in waiting]
    assert woken == [True] * 4


def test_an_event_between_looking_and_waiting_is_not_missed(
    installation: Installation, process: Process
) -> None:
    other = installation.process()
    for writer in (process, other):
        waker = warmed(process)
        seen = waker.count
        register(writer, 1)
        assert waker.wait(seen, PATIENCE_S)


def test_waiting_is_bounded(process: Process) -> None:
    waker = warmed(process)
    assert not waker.wait(waker.count, 0.05)
