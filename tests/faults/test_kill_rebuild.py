"""A killed rebuild costs nothing: the old tables go on serving, and nothing is left behind."""

import os
import signal
from collections.abc import Sequence

from sqlalchemy import select, table, text

from tests.app.cli.shell import shell_of
from tests.installation import LOOK_S, PATIENCE_S, Installation, Process, wait_until
from tests.projections.histories import Life
from tests.projections.looking import places, register, rows, tables
from tests.support import warm

EVENTS = 8_000  # Enough for a rebuild to be met in its midst.


def kill_in_the_midst(installation: Installation, arguments: Sequence[str]) -> None:
    """Run a command and kill it -9 when it has begun to fill new tables."""
    environment = shell_of(installation).process_environment
    running = warm.start(arguments, environment, start_new_session=True)
    looking = installation.process()

    def filling() -> bool:
        assert running.poll() is None, "it was too quick for this test"
        fresh = [name for name in tables(looking) if name.startswith("organizations__")]
        with looking.views.reading() as connection:
            return any(
                connection.execute(select(text("1")).select_from(table(name)).limit(1)).first()
                for name in fresh
            )

    wait_until(filling, look_s_max=LOOK_S)
    os.killpg(running.pid, signal.SIGKILL)
    assert running.wait(PATIENCE_S) == -signal.SIGKILL


def test_a_rebuild_that_is_killed_leaves_the_old_tables_serving_and_the_new_ones_for_a_day(
    installation: Installation, process: Process
) -> None:
    Life(process, seed=51).go_on(40)
    for _ in range(4):
        register(process, EVENTS // 4)
    process.projector.catch_up()
    before, served = (rows(process), places(process)), tables(process)
    kill_in_the_midst(installation, ["projections", "rebuild", "--all"])
    assert (rows(process), places(process)) == before
    orphans = tables(process) - served
    shell = shell_of(installation)
    assert len(shell.json("projections", "rebuild", "--all")["data"]) == len(process.models)
    shell.run("migrate")
    after = tables(process)
    assert orphans <= after, "it might have been a rebuild that still runs"
    for orphan in orphans:
        let_a_day_pass(process, orphan)
    shell.run("migrate")
    assert tables(process) == after - orphans
    assert process.audit().failures == []


def let_a_day_pass(process: Process, orphan: str) -> None:
    """Rename a table as it would be called if it had been made a day and an hour ago.

    What belongs to a virtual table of SQLite follows it.
    """
    name, _, generation = orphan.rpartition("__")
    if "_" in generation:
        return
    made = int(generation[:8], 16) - 25 * 3600
    with process.views.writing() as connection:
        older = f"{name}__{made:08x}{generation[8:]}"
        connection.exec_driver_sql(f'ALTER TABLE "{orphan}" RENAME TO "{older}"')
