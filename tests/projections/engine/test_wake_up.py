"""Whatever process appends, every thread that waits for the log to grow is woken."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.installation import PATIENCE_S, Installation, Process, postgresql_only, wait_until
from tests.projections.looking import register

SOON_S = PATIENCE_S / 2  # Far above what a wake-up takes, below what a waiter would wait.


def seconds(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def test_a_waiter_is_woken_in_its_own_process(process: Process) -> None:
    appended = process.log.appended
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(appended.wait, appended.count, PATIENCE_S)
        assert seconds(lambda: register(process, 1)) < SOON_S
        assert seconds(waiting.result) < SOON_S
    assert waiting.result()


def test_an_event_between_looking_and_waiting_is_not_missed(process: Process) -> None:
    appended = process.log.appended
    seen = appended.count
    register(process, 1)
    assert appended.wait(seen, PATIENCE_S)


@postgresql_only("on SQLite nothing tells of other processes: followers look by themselves")
def test_every_waiter_is_woken_from_another_process(
    installation: Installation, process: Process
) -> None:
    appended, other = process.log.appended, installation.process()
    process.listen()
    wait_until(lambda: appended.hears_others and appended.count > 0)
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(appended.wait, appended.count, 2 * SOON_S) for _ in range(4)]
        register(other, 1)
        woken = [each.result() for each in waiting]
    assert woken == [True] * 4


def test_waiting_is_bounded(process: Process) -> None:
    assert not process.log.appended.wait(process.log.appended.count, 0.05)
