"""A slice of a job is looked up, settled and refunded once, whatever its messages do."""

from datetime import timedelta
from uuid import uuid4

import pytest

from domain.lookups.answers import CALLS_MAX
from domain.lookups.bulk_commands import SLICE_ITEMS
from domain.lookups.bulk_job import STARTS_MAX, Asked, BulkJob
from domain.months import month_of
from tests.installation import CountingProvider, Installation, Process, numbers
from tests.projections.histories import create_job
from tests.support.erasing import erase_months
from tests.workers.jobs import Work, suspend
from workers.bulk import ERASED, EXHAUSTED, UNAVAILABLE


def worker(installation: Installation, provider: CountingProvider) -> Process:
    return installation.process(provider=provider)


@pytest.mark.any_database
def test_every_item_is_answered_about_its_own_number(installation: Installation) -> None:
    work, provider = Work(installation, numbers(SLICE_ITEMS + 2)), CountingProvider()
    process = worker(installation, provider)
    for slice_index in (1, 0):
        process.bulk_lookup.work(work.job_id, slice_index)
    assert work.answers() == {number: number for number in numbers(SLICE_ITEMS + 2)}
    completed = [each for each in work.job.settlements if isinstance(each, BulkJob.ItemsCompleted)]
    asked = [[Asked("counting", 2)], [Asked("counting", SLICE_ITEMS)]]
    assert [each.asked for each in completed] == asked
    assert work.job.finished_at is not None
    work.check()


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


def test_a_job_of_several_slices_finishes_with_its_last_one(installation: Installation) -> None:
    work, provider = Work(installation, numbers(3 * SLICE_ITEMS)), CountingProvider()
    process = worker(installation, provider)
    for slice_index in (2, 0):
        process.bulk_lookup.work(work.job_id, slice_index)
        assert work.job.finished_at is None
    process.bulk_lookup.work(work.job_id, 1)
    assert work.job.finished_at is not None
    assert len(provider.asked) == 3 * SLICE_ITEMS
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


def test_items_that_fail_are_refunded_exactly(installation: Installation) -> None:
    wanted = numbers(10)
    work, provider = Work(installation, wanted), CountingProvider(down=wanted[2:5])
    worker(installation, provider).bulk_lookup.work(work.job_id, 0)
    assert work.errors() == dict.fromkeys((2, 3, 4), UNAVAILABLE)
    assert work.job.completed == {0, 1, 5, 6, 7, 8, 9}
    assert len(provider.asked) == 7 + 3 * CALLS_MAX
    assert work.spent_micros == 7 * work.price_micros
    work.check()


@pytest.mark.any_database
def test_an_outage_fails_every_item_and_gives_all_money_back(installation: Installation) -> None:
    work, provider = Work(installation, numbers(5)), CountingProvider()
    provider.all_down = True
    worker(installation, provider).bulk_lookup.work(work.job_id, 0)
    assert set(work.errors().values()) == {"The lookup service is unavailable."}
    assert work.job.finished_at is not None
    assert work.spent_micros == 0
    work.check()


@pytest.mark.any_database
def test_a_number_that_answers_at_the_second_call_is_an_answer(
    installation: Installation,
) -> None:
    work, provider = Work(installation, numbers(2)), CountingProvider(down=numbers(1))
    provider.on_call(2, provider.down.clear)
    worker(installation, provider).bulk_lookup.work(work.job_id, 0)
    assert work.job.completed == {0, 1}
    assert len(provider.asked) == 3
    work.check()


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
@pytest.mark.parametrize("down", [[], numbers(2)], ids=["all answered", "two failed"])
def test_a_free_job_moves_no_money(installation: Installation, down: list[str]) -> None:
    work = Work(installation, numbers(4), price_micros=0)
    worker(installation, CountingProvider(down)).bulk_lookup.work(work.job_id, 0)
    assert (len(work.job.completed), len(work.job.failed)) == (4 - len(down), len(down))
    assert all(settled.indexes for settled in work.job.settlements)
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


@pytest.mark.any_database
def test_what_an_earlier_job_has_learned_is_asked_again_by_others_only(
    installation: Installation,
) -> None:
    first, provider = Work(installation, numbers(5)), CountingProvider(remote=True)
    process = worker(installation, provider)
    process.bulk_lookup.work(first.job_id, 0)
    again = create_job(process, first.organization_id, numbers(6))
    process.bulk_lookup.work(again, 0)
    assert sorted(provider.asked) == numbers(6)
    other = Work(installation, numbers(6))
    process.bulk_lookup.work(other.job_id, 0)
    assert sorted(provider.asked) == sorted(numbers(6) * 2)
    other.check()
