"""Read models are rebuilt beside the serving ones: nobody sees a table missing or a row twice."""

import os
from collections.abc import Callable
from threading import Event, Thread
from uuid import UUID

import pytest
from sqlalchemy import text

from projections.audit.auditor import verify
from projections.engine.follower import Follower
from projections.engine.rebuild import rebuild_all
from projections.engine.verify import differences
from projections.models.transactions import EntryFilter
from tests.installation import Installation, Process, postgresql_only, wait_until
from tests.projections.histories import Life
from tests.projections.looking import all_lags, failures

pytestmark = pytest.mark.slow
ROUNDS = 2 if os.environ.get("SOAK") == "1" else 1


class Beside:
    """Threads that live beside a rebuild; what one of them raises fails the test."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.stop = Event()
        self._threads: list[Thread] = []

    def start(self, step: Callable[[], object]) -> None:
        def run() -> None:
            while not self.stop.is_set():
                try:
                    step()
                except Exception as error:  # noqa: BLE001  # Whatever it is, the test shows it.
                    self.errors.append(error)
                    return

        self._threads.append(Thread(target=run))
        self._threads[-1].start()

    def end(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join()


def reads_of(process: Process, organization_id: UUID, job_id: UUID) -> Callable[[], object]:
    """Return reads of every model, each of which has to find what was there before."""

    def read() -> None:
        with process.views.reading() as connection:
            assert process.organizations.get(connection, organization_id) is not None
            assert process.wallets.get(connection, organization_id) is not None
            job = process.jobs.get(process.views, organization_id, job_id)
            assert job.completed_count == 1
            found, total = process.transactions.page(
                connection, organization_id, EntryFilter(), slice(0, 5)
            )
            assert len(found) == min(total, 5) > 0
            assert [each.sequence for each in found] == [*range(total, max(total - 5, 0), -1)]
            assert process.clients.all(connection)

    return read


@postgresql_only("locks of tables")
def test_a_rebuild_waits_for_a_backup_and_nobody_waits_for_the_rebuild(process: Process) -> None:
    made = process.organization("1.00")
    process.projector.catch_up()
    source = process.source
    rebuilding = Thread(target=lambda: rebuild_all(source, [process.organizations]))
    with process.views.snapshot() as backup:
        backup.execute(process.organizations.rows.select()).all()
        rebuilding.start()
        for _ in range(3):  # It has tried, has let go, and tries again.
            wait_until(lambda: swaps_that_wait(process) == 1)
            with process.views.writing() as connection:
                connection.execute(text("SET LOCAL statement_timeout = '3s'"))
                assert process.organizations.get(connection, made) is not None
            wait_until(lambda: swaps_that_wait(process) == 0)
    rebuilding.join()
    assert process.read(process.organizations.get, made) is not None
    assert verify(source, process.models).failures == []


def swaps_that_wait(process: Process) -> int:
    statement = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock' AND query LIKE 'DROP TABLE%'"
    )
    with process.vault.database.reading() as connection:
        return int(connection.execute(text(statement)).scalar_one())


@pytest.mark.each_database
@pytest.mark.rounds
def test_rebuilding_while_events_arrive_and_readers_read(installation: Installation) -> None:
    writer, projecting, reading, rebuilding = (installation.process() for _ in range(4))
    life, beside = Life(writer, seed=11), Beside()
    organization_id = writer.organization("1.00")
    job_id = writer.create_job(organization_id, ["+14155550100"])
    writer.finish_job(job_id)
    projecting.projector.catch_up()
    follower = Follower("projector", projecting.projector.step, projecting.log.appended)
    thread = Thread(target=lambda: follower.run(beside.stop))
    thread.start()
    beside.start(lambda: life.go_on(1))
    beside.start(reads_of(reading, organization_id, job_id))
    for _ in range(ROUNDS):
        for model in rebuilding.models:
            rebuild_all(rebuilding.source, [model])
            wait_until(lambda: all(lag.behind < 50 for lag in all_lags(writer)))
    beside.end()
    thread.join()
    assert beside.errors == []
    assert failures(writer) == {}
    projecting.projector.catch_up()
    assert writer.audit().failures == []


@pytest.mark.each_database
def test_what_comes_while_tables_are_filled_is_read_before_anybody_has_to_wait(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projections.engine.rebuild.BATCH_EVENTS_MAX", 2)
    for index in range(4):
        process.organization("", name=f"before {index}")
    process.projector.catch_up()
    reached: list[int] = []

    def progress(position: int, _goal: int) -> None:
        reached.append(position)
        if len(reached) == 1:
            for index in range(10):
                process.organization("", name=f"meanwhile {index}")
            process.projector.catch_up()

    rebuild_all(process.source, [process.organizations], progress)
    assert reached[-1] >= process.log.head() - 2
    assert differences(process.source, process.organizations) == []
