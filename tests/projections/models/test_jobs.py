"""Jobs as read: their counts, their settlements, and which of them are idle."""

import re
from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest

from domain.lookups.bulk_commands import SLICE_ITEMS
from projections.models.jobs import JobStatus
from tests.installation import Process, SetClock, numbers, sqlite_only
from tests.projections.looking import plan_of, statements
from tests.support.erasing import erase_months


def idle(process: Process, seconds: float = 0, limit: int = 100) -> list[UUID]:
    idle_for = timedelta(seconds=seconds)
    return [
        job.id for job in process.ask(process.jobs.unfinished, process.clock(), limit, idle_for)
    ]


@pytest.mark.any_database
def test_a_list_shows_no_job_whose_month_was_erased(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    def listed(status: JobStatus | None = None) -> list[UUID]:
        process.projector.catch_up()
        asked = organization_id, status, partial(process.vault.holds, organization_id)
        found, total = process.jobs.page(process.views, *asked, offset=0, limit=9)
        assert total == len(found)
        return [each.id for each in found]

    old = process.create_job(organization_id, numbers(1))
    clock.forward(days=31)
    new = process.create_job(organization_id, numbers(1))
    assert listed() == [new, old]
    erase_months(process.vault, "2026-04", organization_id)
    assert listed() == listed("pending") == [new]
    assert listed("completed") == []


@pytest.mark.any_database
def test_nobody_reads_the_jobs_of_others(process: Process, organization_id: UUID) -> None:
    job_id, other = process.create_job(organization_id, numbers(1)), process.organization()
    process.create_job(other, numbers(1))
    process.projector.catch_up()
    found, total = process.jobs.page(process.views, organization_id, None, bool, offset=0, limit=1)
    assert ([each.id for each in found], total) == ([job_id], 1)
    for read in (process.jobs.get, process.jobs.counts):
        assert read(process.views, organization_id, job_id) is not None
        assert read(process.views, other, job_id) is None


def test_jobs_that_are_idle_come_longest_idle_first_and_bounded(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    jobs = []
    for _ in range(4):
        jobs.append(process.create_job(organization_id, numbers(SLICE_ITEMS + 1)))
        clock.forward(seconds=10)
    process.bulk_lookup.work(jobs[0], 1)
    assert idle(process) == [*jobs[1:], jobs[0]]
    assert idle(process, limit=2) == jobs[1:3]
    assert idle(process, seconds=30) == [jobs[1]]
    assert idle(process, seconds=30.1) == []


@sqlite_only("the plan of a query is told in SQLite's words")
def test_idle_jobs_are_found_by_the_index_of_unfinished_ones(process: Process) -> None:
    asked = statements(process, lambda: idle(process))
    told = " ".join(
        plan_of(process, *next(each for each in asked if "finished_at IS NULL" in each[0]))
    )
    assert re.search(r"SCAN jobs USING INDEX jobs_unfinished", told)
    assert "TEMP B-TREE FOR ORDER BY" not in told
