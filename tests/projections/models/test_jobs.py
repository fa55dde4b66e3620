"""Jobs as read: lists, whose they are, and how the oldest open one is found."""

import re
from functools import partial
from uuid import UUID

from app.bootstrap.observed import Observed
from projections.models.jobs import JobStatus
from tests.installation import Process, SetClock, numbers, sqlite_only
from tests.projections.looking import plan_of, statements
from tests.support.erasing import erase_months


def test_a_list_shows_no_job_whose_month_was_erased(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    def listed(status: JobStatus | None = None) -> list[UUID]:
        process.projector.catch_up()
        asked = organization_id, status, partial(process.vault.has, organization_id)
        found, total = process.jobs.page(process.views, *asked, slice(0, 9))
        assert total == len(found)
        return [each.id for each in found]

    old = process.create_job(organization_id, numbers(1))
    clock.forward(days=31)
    new = process.create_job(organization_id, numbers(1))
    assert listed() == [new, old]
    erase_months(process.vault, "2026-04", organization_id)
    assert listed() == listed("pending") == [new]
    assert listed("completed") == []


def test_nobody_reads_the_jobs_of_others(process: Process, organization_id: UUID) -> None:
    job_id, other = process.create_job(organization_id, numbers(1)), process.organization()
    process.create_job(other, numbers(1))
    process.projector.catch_up()
    found, total = process.jobs.page(process.views, organization_id, None, bool, slice(0, 1))
    assert ([each.id for each in found], total) == ([job_id], 1)
    for read in (process.jobs.get, process.jobs.counts):
        assert read(process.views, organization_id, job_id) is not None
        assert read(process.views, other, job_id) is None


@sqlite_only("the plan of a query is told in SQLite's words")
def test_the_age_of_open_jobs_is_found_by_their_index(process: Process) -> None:
    asked = statements(process, Observed(process).work)
    told = " ".join(
        plan_of(process, *next(each for each in asked if "finished_at IS NULL" in each[0]))
    )
    assert re.search(r"SCAN jobs USING INDEX jobs_unfinished", told)
