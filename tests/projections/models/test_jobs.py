"""Jobs as read: their counts, their settlements, and which of them are idle."""

import re
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event

from domain.lookups.bulk_commands import SLICE_ITEMS
from projections.engine.rebuild import rebuild_all
from projections.models.jobs import JobRow, JobStatus
from tests.installation import Process, SetClock, numbers, sqlite_only
from tests.projections.histories import DOWN, create_job, finish_job
from tests.support.erasing import erase_months


def row(process: Process, organization_id: UUID, job_id: UUID) -> JobRow | None:
    process.projector.catch_up()
    return process.jobs.get(process.views, organization_id, job_id)


def idle(process: Process, seconds: float = 0, limit: int = 100) -> list[UUID]:
    process.projector.catch_up()
    now, idle_for = process.clock(), timedelta(seconds=seconds)
    with process.views.reading() as connection:
        return [job.id for job in process.jobs.unfinished(connection, now, limit, idle_for)]


def listed(
    process: Process, organization_id: UUID, status: JobStatus | None = None, **page: int
) -> tuple[list[UUID], int]:
    process.projector.catch_up()
    found, total = process.jobs.page(
        process.views,
        organization_id,
        status,
        partial(process.vault.holds, organization_id),
        offset=page.get("offset", 0),
        limit=page.get("limit", 100),
    )
    for each in found:
        assert each == process.jobs.counts(process.views, organization_id, each.id)
    return [each.id for each in found], total


@pytest.mark.any_database
def test_a_list_shows_no_job_whose_numbers_were_erased(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    old = create_job(process, organization_id, numbers(1))
    clock.forward(days=31)
    new = create_job(process, organization_id, numbers(1))
    assert listed(process, organization_id) == ([new, old], 2)
    erase_months(process.vault, "2026-04", organization_id)
    assert listed(process, organization_id) == ([new], 1)
    assert listed(process, organization_id, "pending") == ([new], 1)


@pytest.mark.any_database
def test_nobody_sees_the_jobs_of_others(process: Process, organization_id: UUID) -> None:
    job_id = create_job(process, organization_id, numbers(1))
    other = process.organization()
    assert row(process, organization_id, job_id) is not None
    assert row(process, other, job_id) is None
    assert row(process, uuid4(), job_id) is None
    assert row(process, organization_id, uuid4()) is None


@pytest.mark.any_database
def test_a_job_whose_month_was_erased_opens_no_more_after_a_rebuild_neither(
    process: Process, organization_id: UUID
) -> None:
    job_id = create_job(process, organization_id, [*numbers(2), DOWN])
    finish_job(process, job_id)
    assert erase_months(process.vault, "2026-04", organization_id) == 1
    for _ in range(2):
        found = row(process, organization_id, job_id)
        assert found is not None
        boxes = [found.numbers, *(each.results for each in found.settlements if each.results)]
        assert len(boxes) == 2
        assert {process.vault.open(organization_id, job_id, box) for box in boxes} == {None}
        assert (found.completed_count, found.failed_count) == (2, 1)
        rebuild_all(process.log, process.views, process.positions, [process.jobs])


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
