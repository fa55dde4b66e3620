"""The sweep asks again for what has not moved, less and less often, and floods no queue."""

from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest

from domain.lookups.bulk_commands import SLICE_ITEMS
from tests.installation import Process, SetClock, numbers
from tests.projections.histories import create_job
from tests.workers.queueing import Queue, sweep_of
from workers.sweep import IDLE, JOBS_BACK_OFF_MAX, JOBS_BACKLOG_MAX, JOBS_MAX, Sweep


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def sweep(process: Process, queue: Queue) -> Sweep:
    return sweep_of(process, queue)


def run(process: Process, sweep: Sweep, idle: timedelta = IDLE) -> int:
    process.projector.catch_up()
    return sweep.run(idle)


@pytest.mark.any_database
def test_a_job_is_asked_for_again_after_a_minute_without_movement(
    process: Process, sweep: Sweep, queue: Queue, organization_id: UUID, clock: SetClock
) -> None:
    job_id = create_job(process, organization_id, numbers(SLICE_ITEMS + 1))
    clock.forward(seconds=59.999999)
    assert run(process, sweep) == 0
    clock.forward(seconds=0.000001)
    assert run(process, sweep) == 2
    assert queue.taken() == [(job_id, 0), (job_id, 1)]
    clock.forward(hours=-2)
    assert run(process, sweep) == 2, "a clock that ran ahead has moved it"


def test_jobs_beyond_the_bound_have_their_turn_though_nobody_works_on_the_first(
    process: Process, sweep: Sweep, queue: Queue, organization_id: UUID, clock: SetClock
) -> None:
    jobs = []
    for _ in range(JOBS_MAX + 5):
        jobs.append(create_job(process, organization_id, numbers(1)))
        clock.forward(milliseconds=1)
    clock.forward(seconds=60)
    for _ in range(2):
        run(process, sweep)
        clock.forward(seconds=10)
    assert {job for job, _ in queue.taken()} == set(jobs)


def test_the_wait_between_two_sweeps_of_a_job_doubles_up_to_its_bound(
    process: Process, sweep: Sweep, queue: Queue, organization_id: UUID, clock: SetClock
) -> None:
    create_job(process, organization_id, numbers(1))
    clock.forward(seconds=60)
    started, at = clock.now, []
    while clock.now < started + timedelta(minutes=30):
        if run(process, sweep):
            at.append((clock.now - started).total_seconds() / 60)
        clock.forward(seconds=30)
    waits = [later - earlier for earlier, later in pairwise(at)]
    assert waits == [1, 2, 4, 5, 5, 5, 5]
    assert max(waits) * 60 == JOBS_BACK_OFF_MAX.total_seconds()
    assert len(queue.messages) == len(at)


@pytest.mark.any_database
def test_a_job_that_moves_begins_anew(
    process: Process, sweep: Sweep, queue: Queue, organization_id: UUID, clock: SetClock
) -> None:
    job_id = create_job(process, organization_id, numbers(2 * SLICE_ITEMS))
    clock.forward(seconds=60)
    for _ in range(3):
        run(process, sweep)
        clock.forward(minutes=10)
    process.bulk_lookup.work(job_id, 0)
    queue.taken()
    assert run(process, sweep) == 0
    clock.forward(seconds=60)
    assert run(process, sweep) == 1


@pytest.mark.any_database
def test_nothing_is_swept_while_the_queue_is_long(
    process: Process, sweep: Sweep, queue: Queue, organization_id: UUID, clock: SetClock
) -> None:
    create_job(process, organization_id, numbers(1))
    clock.forward(seconds=60)
    queue.waiting = JOBS_BACKLOG_MAX + 1
    assert run(process, sweep) == 0
    queue.waiting = JOBS_BACKLOG_MAX
    assert run(process, sweep) == 1
