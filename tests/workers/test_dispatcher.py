"""The dispatcher publishes first and moves after: a message may come twice, never not at all."""

import shutil
from contextlib import closing
from uuid import UUID, uuid4

import pytest

from app.processes.migrate import migrate
from domain.errors import ServiceUnavailable
from domain.log.log import Poisoned
from domain.lookups.bulk_commands import SLICE_ITEMS
from tests.installation import Installation, Process, numbers, sqlite_only
from tests.projections.histories import create_job, write_row
from tests.projections.looking import place_of, register
from tests.seeds import sqlite_seed
from tests.workers.queueing import Queue, Refusing, Sweeps, dispatcher_of
from workers.dispatcher import BATCH_EVENTS_MAX, NAME, Dispatcher


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def organization_id(process: Process) -> UUID:
    return process.organization()


@pytest.fixture
def dispatcher(process: Process, queue: Queue, organization_id: UUID) -> Dispatcher:
    """A dispatcher that has begun, behind the making of an organization."""
    assert process.log.head() == 5, organization_id
    begun = dispatcher_of(process, queue)
    drain(begun)
    return begun


def drain(dispatcher: Dispatcher) -> None:
    while dispatcher.step():
        pass


def position(process: Process) -> int:
    return place_of(process, NAME).position


@pytest.mark.any_database
def test_what_asks_for_no_work_is_passed(
    process: Process, dispatcher: Dispatcher, queue: Queue
) -> None:
    register(process, BATCH_EVENTS_MAX + 1)
    assert dispatcher.step()
    assert position(process) == 5 + BATCH_EVENTS_MAX
    drain(dispatcher)
    assert position(process) == process.log.head()
    assert queue.messages == []


@pytest.mark.any_database
def test_a_position_does_not_move_before_the_broker_has_everything(
    process: Process, dispatcher: Dispatcher, queue: Queue, organization_id: UUID
) -> None:
    job_id = create_job(process, organization_id, numbers(2 * SLICE_ITEMS))
    queue.capacity = 1
    for _ in range(2):
        with pytest.raises(Refusing):
            dispatcher.step()
        assert position(process) == 5
    queue.capacity = None
    drain(dispatcher)
    assert queue.taken() == [(job_id, 0), (job_id, 0), (job_id, 1)]


def test_a_first_start_is_at_the_head_and_asks_for_a_sweep(
    process: Process, queue: Queue, organization_id: UUID
) -> None:
    create_job(process, organization_id, numbers(1))
    sweeps = Sweeps()
    drain(dispatcher_of(process, queue, sweeps))
    assert (queue.messages, sweeps.count) == ([], 1)
    assert position(process) == process.log.head()


@pytest.mark.any_database
@pytest.mark.usefixtures("organization_id")
def test_a_first_start_whose_sweep_fails_is_made_again(process: Process, queue: Queue) -> None:
    asked: list[int] = []

    def sweep() -> None:
        asked.append(process.log.head())
        if len(asked) == 1:
            raise ServiceUnavailable

    for _ in range(2):  # As two processes, of which the first one ends.
        dispatcher = Dispatcher(process.log, process.views, process.positions, queue, sweep)
        if not asked:
            with pytest.raises(ServiceUnavailable):
                dispatcher.step()
    drain(dispatcher)
    assert len(asked) == 2
    assert position(process) == process.log.head()


@sqlite_only("the log is a file; on PostgreSQL it is restored together with the positions")
def test_a_start_on_another_log_is_at_its_head_and_asks_for_a_sweep(
    installation: Installation,
    process: Process,
    dispatcher: Dispatcher,
    queue: Queue,
    organization_id: UUID,
) -> None:
    create_job(process, organization_id, numbers(1))
    drain(dispatcher)
    queue.taken()
    process.close()
    for suffix in ("", "-wal", "-shm"):
        installation.log_file.with_name(f"service.db{suffix}").unlink(missing_ok=True)
    elsewhere = installation.directory / "other"
    elsewhere.mkdir()
    with closing(Installation(elsewhere, like=sqlite_seed())) as other:
        other.process().organization()
    shutil.copy(other.log_file, installation.log_file)  # Where the first one was.
    restored = installation.process()
    migrate(restored)
    create_job(restored, restored.organization(), numbers(1))
    sweeps = Sweeps()
    drain(dispatcher_of(restored, queue, sweeps))
    assert (queue.messages, sweeps.count) == ([], 1)
    assert position(restored) == restored.log.head()


def test_a_dispatcher_whose_position_was_deleted_starts_again_at_the_head(
    process: Process, dispatcher: Dispatcher, queue: Queue, organization_id: UUID
) -> None:
    drain(dispatcher)
    with process.views.writing() as connection:
        connection.execute(process.positions.rows.delete())
    job_id = create_job(process, organization_id, numbers(1))
    drain(dispatcher)
    assert queue.taken() == [(job_id, 0)]  # Published before it was seen that the place has gone.
    assert position(process) == process.log.head()


@pytest.mark.any_database
def test_an_event_that_cannot_be_decoded_is_reported_and_not_passed(
    process: Process, dispatcher: Dispatcher
) -> None:
    broken = write_row(process, uuid4().hex, 1, "nobody.knows", b"{}")
    with pytest.raises(Poisoned):
        dispatcher.step()
    place = place_of(process, NAME)
    assert place.position == broken - 1
    assert place.failure is not None
    assert f"position {broken}" in place.failure
