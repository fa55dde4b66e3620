"""A slice of a job is looked up, settled and refunded once, whatever its messages do."""

from datetime import timedelta
from uuid import uuid4

import pytest

from domain.lookups.bulk_job import STARTS_MAX
from domain.months import month_of
from tests.installation import CountingProvider, Installation, Process, numbers
from tests.support.erasing import erase_months
from tests.workers.jobs import Work, suspend
from workers.bulk import ERASED, EXHAUSTED


def worker(installation: Installation, provider: CountingProvider) -> Process:
    return installation.process(provider=provider)


def test_a_message_that_comes_twice_finds_nothing_to_do(installation: Installation) -> None:
    work, provider = Work(installation, numbers(3)), CountingProvider()
    process = worker(installation, provider)
    process.bulk_lookup.work(work.job_id, 0)
    head = process.log.head()
    for _ in range(3):
        process.bulk_lookup.work(work.job_id, 0)
    assert process.log.head() == head
    assert len(provider.asked) == 3
    work.check()


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


def test_five_starts_without_an_end_fail_the_slice_and_a_sixth_never_begins(
    installation: Installation,
) -> None:
    work, provider = Work(installation, numbers(3)), CountingProvider()
    provider.bug = SystemExit()  # A worker that dies in the midst of its work.
    process = worker(installation, provider)
    for attempt in range(STARTS_MAX):
        with pytest.raises(SystemExit):
            process.bulk_lookup.work(work.job_id, 0)
        assert work.starts() == attempt + 1
        work.check()
    for _ in range(2):
        process.bulk_lookup.work(work.job_id, 0)
    assert len(provider.asked) == STARTS_MAX
    assert work.starts() == STARTS_MAX
    assert work.errors() == dict.fromkeys((0, 1, 2), EXHAUSTED)
    assert work.job.finished_at is not None
    assert work.spent_micros == 0
    work.check()


@pytest.mark.any_database
def test_a_provider_that_raises_what_its_port_does_not_know_costs_an_attempt_only(
    installation: Installation,
) -> None:
    work, provider = Work(installation, numbers(3)), CountingProvider()
    provider.bug = KeyError("a bug of the adapter")
    process = worker(installation, provider)
    with pytest.raises(KeyError):
        process.bulk_lookup.work(work.job_id, 0)
    assert work.job.open_items(0) == [0, 1, 2]
    provider.bug = None
    process.bulk_lookup.work(work.job_id, 0)
    assert work.job.completed == {0, 1, 2}
    assert work.starts() == 2
    work.check()


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
