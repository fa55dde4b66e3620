"""Jobs as read: their counts, their settlements, and which of them are idle."""

import re
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event

from domain.accounts.refund_by_hand import HandRefund
from domain.lookups.bulk_commands import SLICE_ITEMS
from domain.lookups.bulk_job import BulkJob
from projections.engine.rebuild import rebuild_all
from projections.models.jobs import STATUSES, JobRow, JobStatus, row_of
from tests.installation import PRICE_MICROS, Process, SetClock, numbers, sqlite_only
from tests.projections.histories import DOWN, cancel_job, create_job, finish_job
from tests.support.erasing import erase_months


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


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_a_cancelled_job_reads_as_its_aggregate_with_all_that_went_back(
    process: Process,
    organization_id: UUID,
    in_one_batch: bool,  # noqa: FBT001  # It is one case of the table.
) -> None:
    job_id = create_job(process, organization_id, [*numbers(SLICE_ITEMS), DOWN, "+14155559999"])
    steps = [
        lambda: process.bulk_lookup.work(job_id, 1),
        lambda: cancel_job(process, organization_id, job_id),
        lambda: process.accounts.refund(job_id, asked_back(process, job_id, 300), process.cause()),
    ]
    for step in steps:
        step()
        if not in_one_batch:
            row(process, organization_id, job_id)
    found = row(process, organization_id, job_id)
    assert found == row_of(process.log.get(BulkJob, job_id))
    assert found is not None
    assert (found.status, found.cancelled_count) == ("cancelled", SLICE_ITEMS)
    assert found.refunded_micros == (SLICE_ITEMS + 1) * PRICE_MICROS + 300
    assert idle(process) == []


def asked_back(process: Process, job_id: UUID, micros: int) -> HandRefund:
    price = process.log.get(BulkJob, job_id).created.price
    assert price is not None
    return HandRefund(price.transaction_id, "t-1", "a complaint", micros, {})


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


def test_jobs_are_listed_newest_first_by_status_and_counted(
    process: Process, organization_id: UUID
) -> None:
    foreign = process.organization("5.00")
    jobs = [create_job(process, organization_id, [DOWN, *numbers(SLICE_ITEMS)]) for _ in range(4)]
    create_job(process, foreign, numbers(1))
    down = create_job(process, organization_id, [DOWN])
    every = [down, *reversed(jobs)]
    assert listed(process, organization_id) == (every, 5)
    process.bulk_lookup.work(jobs[0], 0)
    finish_job(process, jobs[1])
    finish_job(process, down)
    cancel_job(process, organization_id, jobs[2])
    told = {
        "pending": [jobs[3]],
        "processing": [jobs[0]],
        "completed": [jobs[1]],
        "cancelled": [jobs[2]],
        "failed": [down],
    }
    for _ in range(2):
        for status in STATUSES:
            assert listed(process, organization_id, status) == (told[status], 1), status
        assert listed(process, organization_id) == (every, 5)
        assert listed(process, organization_id, offset=1, limit=2) == (every[1:3], 5)
        assert listed(process, organization_id, offset=5) == ([], 5)
        assert listed(process, process.organization()) == ([], 0)
        rebuild_all(process.log, process.views, process.positions, [process.jobs])


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


def test_a_fresh_job_has_no_settlement(process: Process, organization_id: UUID) -> None:
    job_id = create_job(process, organization_id, numbers(2))
    found = row(process, organization_id, job_id)
    assert found is not None
    assert (found.total_count, found.settlements, found.finished_at) == (2, [], None)


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


@pytest.mark.any_database
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
