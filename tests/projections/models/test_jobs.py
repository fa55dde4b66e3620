"""Jobs as read: their counts, their settlements, and which of them are idle."""

import re
from datetime import timedelta
from uuid import UUID

from domain.lookups.bulk_commands import SLICE_ITEMS
from tests.installation import Process, SetClock, numbers, sqlite_only
from tests.projections.histories import create_job
from tests.projections.looking import ask, plan_of, statements


def idle(process: Process, seconds: float = 0, limit: int = 100) -> list[UUID]:
    idle_for = timedelta(seconds=seconds)
    return [
        job.id for job in ask(process, process.jobs.unfinished, process.clock(), limit, idle_for)
    ]


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
    asked = statements(process, lambda: idle(process))
    told = " ".join(
        plan_of(process, *next(each for each in asked if "finished_at IS NULL" in each[0]))
    )
    assert re.search(r"SEARCH jobs USING INDEX jobs_unfinished\w* \(moved_at<\?\)", told)
    assert "TEMP B-TREE FOR ORDER BY" not in told
