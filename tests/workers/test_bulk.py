"""A slice of a job is looked up, settled and refunded once, whatever its messages do."""

from datetime import timedelta
from uuid import uuid4

import pytest

from domain.lookups.bulk_job import STARTS_MAX
from domain.months import month_of
from tests.installation import CountingProvider, Installation, Process, numbers
from tests.support.erasing import erase_months
from tests.workers.jobs import Work, suspend
from workers.bulk import ERASED


def worker(installation: Installation, provider: CountingProvider) -> Process:
    return installation.process(provider=provider)


@pytest.mark.any_database
@pytest.mark.parametrize("slice_index", [1, 99, -1])
def test_a_slice_that_the_job_does_not_have_is_no_work(
    installation: Installation, slice_index: int
) -> None:
    work = Work(installation, numbers(3))
    work.process.bulk_lookup.work(work.job_id, slice_index)
    assert work.job.attempts == {}
    work.check()


@pytest.mark.any_database
def test_a_job_that_does_not_exist_is_no_work(process: Process) -> None:
    process.bulk_lookup.work(uuid4(), 0)
    assert process.log.head() == 0


@pytest.mark.any_database
def test_numbers_that_were_erased_fail_and_are_refunded(installation: Installation) -> None:
    work, provider = Work(installation, numbers(3)), CountingProvider()
    next_month = month_of(work.process.clock() + timedelta(days=31))
    assert erase_months(work.process.vault, next_month) == 1
    worker(installation, provider).bulk_lookup.work(work.job_id, 0)
    assert set(work.errors().values()) == {ERASED}
    assert provider.asked == []
    assert work.spent_micros == 0
    work.check()


def test_numbers_that_are_erased_while_they_are_looked_up_end_all_the_same(
    installation: Installation,
) -> None:
    work, provider = Work(installation, numbers(1)), CountingProvider()
    process = worker(installation, provider)
    next_month = month_of(work.process.clock() + timedelta(days=31))
    provider.meanwhile = lambda: erase_months(process.vault, next_month)
    for _ in range(STARTS_MAX + 1):
        if work.job.finished_at is None:
            try_to_work(process, work)
    assert work.job.finished_at is not None
    work.check()


def try_to_work(process: Process, work: Work) -> None:
    """Take a message; one that raises comes again."""
    try:
        process.bulk_lookup.work(work.job_id, 0)
    except ValueError:
        assert work.job.finished_at is None


@pytest.mark.any_database
def test_an_accepted_job_runs_on_after_a_suspension(installation: Installation) -> None:
    work = Work(installation, numbers(2))
    suspend(work.process, work.organization_id)
    worker(installation, CountingProvider()).bulk_lookup.work(work.job_id, 0)
    assert work.job.completed == {0, 1}
    work.check()
