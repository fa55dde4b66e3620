"""Jobs as read: their counts, their settlements, and which of them are idle."""

import re
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event

from domain.lookups.bulk import SLICE_ITEMS
from domain.lookups.bulk_job import BulkJob
from projections.engine.rebuild import rebuild
from projections.models.jobs import JobRow, row_of
from tests.installation import Process, SetClock, numbers, sqlite_only
from tests.projections.histories import DOWN, create_job, finish_job


def row(process: Process, organization_id: UUID, job_id: UUID) -> JobRow | None:
    process.projector.catch_up()
    return process.jobs.get(process.views, organization_id, job_id)


def idle(process: Process, seconds: float = 0, limit: int = 100) -> list[UUID]:
    process.projector.catch_up()
    now, idle_for = process.clock(), timedelta(seconds=seconds)
    with process.views.reading() as connection:
        return [job.id for job in process.jobs.unfinished(connection, now, limit, idle_for)]


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_a_job_reads_as_its_aggregate_at_every_step(
    process: Process,
    organization_id: UUID,
    clock: SetClock,
    in_one_batch: bool,  # noqa: FBT001  # It is one case of the table.
) -> None:
    def same() -> JobRow | None:
        return row_of(process.log.get(BulkJob, job_id))

    job_id = create_job(process, organization_id, [*numbers(SLICE_ITEMS), DOWN, "+14155559999"])
    for slice_index in (1, 0):
        if not in_one_batch:
            assert row(process, organization_id, job_id) == same()
        clock.forward(seconds=7)
        process.bulk_lookup.work(job_id, slice_index)
    finished = row(process, organization_id, job_id)
    assert finished == same()
    assert finished is not None
    assert (finished.completed_count, finished.failed_count) == (SLICE_ITEMS + 1, 1)
    assert finished.finished_at == clock.now
    assert [each.indexes for each in finished.settlements[:2]] == [[251], [250]]
    assert [each.results is None for each in finished.settlements] == [False, True, False]


def test_a_fresh_job_has_no_settlement(process: Process, organization_id: UUID) -> None:
    job_id = create_job(process, organization_id, numbers(2))
    found = row(process, organization_id, job_id)
    assert found is not None
    assert (found.total_count, found.settlements, found.finished_at) == (2, [], None)


def test_nobody_sees_the_jobs_of_others(process: Process, organization_id: UUID) -> None:
    job_id = create_job(process, organization_id, numbers(1))
    other = process.organization()
    assert row(process, organization_id, job_id) is not None
    assert row(process, other, job_id) is None
    assert row(process, uuid4(), job_id) is None
    assert row(process, organization_id, uuid4()) is None


def test_a_job_whose_month_was_erased_opens_no_more_after_a_rebuild_neither(
    process: Process, organization_id: UUID
) -> None:
    job_id = create_job(process, organization_id, [*numbers(2), DOWN])
    finish_job(process, job_id)
    assert process.vault.erase("2026-04", organization_id) == 1
    for _ in range(2):
        found = row(process, organization_id, job_id)
        assert found is not None
        boxes = [found.numbers, *(each.results for each in found.settlements if each.results)]
        assert len(boxes) == 2
        assert {process.vault.open(organization_id, job_id, box) for box in boxes} == {None}
        assert (found.completed_count, found.failed_count) == (2, 1)
        rebuild(process.log, process.views, process.positions, process.jobs)


def test_jobs_that_are_idle_come_longest_idle_first_and_bounded(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    jobs = []
    for _ in range(4):
        jobs.append(create_job(process, organization_id, numbers(SLICE_ITEMS + 1)))
        clock.forward(seconds=10)
    process.bulk_lookup.work(jobs[0], 1)
    assert idle(process) == [*jobs[1:], jobs[0]]
    assert idle(process, limit=2) == jobs[1:3]
    assert idle(process, seconds=30) == [jobs[1]]
    assert idle(process, seconds=30.1) == []


def test_a_job_that_moved_before_the_clock_was_set_back_is_idle(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    old = create_job(process, organization_id, numbers(1))
    clock.forward(hours=1)
    ahead = create_job(process, organization_id, numbers(1))
    clock.forward(hours=-1, seconds=60)
    assert idle(process, seconds=60) == [old, ahead]
    assert idle(process, seconds=60, limit=1) == [old]
    clock.forward(minutes=58)
    assert idle(process, seconds=60) == [old]  # A clock may be so much ahead of another.


def test_a_finished_job_is_not_idle(process: Process, organization_id: UUID) -> None:
    finished, open_one = (create_job(process, organization_id, numbers(1)) for _ in range(2))
    finish_job(process, finished)
    assert idle(process) == [open_one]


@sqlite_only("the plan of a query is told in SQLite's words")
def test_idle_jobs_are_found_by_the_index_of_unfinished_ones(process: Process) -> None:
    asked: list[tuple[str, tuple[object, ...]]] = []

    @event.listens_for(process.views.engine, "before_cursor_execute")
    def note(*arguments: object) -> None:
        asked.append((str(arguments[2]), tuple(arguments[3])))  # type: ignore[arg-type]  # its parameters

    with process.views.reading() as connection:
        process.jobs.unfinished(connection, process.clock(), 100)
        statement, values = next(each for each in asked if "finished_at IS NULL" in each[0])
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", tuple(values)).all()
    told = " ".join(str(line[-1]) for line in plan)
    assert re.search(r"SEARCH jobs USING INDEX jobs_unfinished\w* \(moved_at<\?\)", told)
    assert "TEMP B-TREE FOR ORDER BY" not in told
