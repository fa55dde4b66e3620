"""Whatever process appends, every thread that waits for the log to grow is woken."""

from concurrent.futures import ThreadPoolExecutor

from tests.installation import PATIENCE_S, Installation, Process, postgresql_only, wait_until
from tests.projections.looking import register


@postgresql_only("on SQLite nothing tells of other processes: followers look by themselves")
def test_every_waiter_is_woken_from_another_process(
    installation: Installation, process: Process
) -> None:
    appended, other = process.log.appended, installation.process()
    process.listen()
    wait_until(lambda: appended.hears_others and appended.count > 0)
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(appended.wait, appended.count, PATIENCE_S) for _ in range(4)]
        register(other, 1)
        woken = [each.result() for each in waiting]
    assert woken == [True] * 4
