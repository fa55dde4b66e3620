"""A bulk job: starts count until an item ends, and its last item ends it."""

from collections.abc import Callable

import msgspec
import pytest

from domain.lookups.bulk_job import STARTS_MAX, BulkJob, PersonalNumbers
from tests.domain.asking import Asker
from tests.domain.build import bulk_job, cause
from tests.domain.test_guards import cancelled, completed, failed, started
from tests.installation import CountingProvider, Installation, numbers
from tests.story import Story, fact


@pytest.mark.parametrize("ended", [completed(1, 2), failed(1, 2)], ids=["completed", "failed"])
def test_a_start_that_ends_an_item_does_not_count(ended: Callable[[BulkJob], object]) -> None:
    story = Story(bulk_job(5, 2)).given(*[started(1)] * STARTS_MAX)
    assert (story.aggregate.exhausted(0), story.aggregate.exhausted(1)) == (False, True)
    story.given(ended).when(started(1))
    story.then(fact(BulkJob.SliceStarted, slice_index=1, attempt=1))


def test_a_job_finishes_with_its_last_item_and_only_once() -> None:
    story = Story(bulk_job(3, 2)).given(completed(0, 0, 1))
    story.when(lambda job: job.finish_if_settled(cause(3))).then(finished_at=None)
    story.given(failed(1, 2)).when(lambda job: job.finish_if_settled(cause(3)))
    story.then(fact(BulkJob.Finished), finished_at=cause(3).at)
    story.when(lambda job: job.finish_if_settled(cause(4))).then(finished_at=cause(3).at)


def test_a_cancelled_job_has_nothing_open_and_gives_back_what_was_not_done() -> None:
    story = Story(bulk_job(5, 2)).given(completed(0, 1), failed(1, 3))
    story.when(cancelled).then(fact(BulkJob.Cancelled, count=3), finished_at=cause(4).at)
    job = story.aggregate
    assert (job.open_items(0), job.still_open()) == ([], None)
    assert [given_back for _, given_back in job.paid()] == [40_000]


@pytest.fixture
def asker(installation: Installation) -> Asker:
    return Asker(installation, CountingProvider(), "10.00")


def test_the_numbers_are_kept_sealed_and_in_order(asker: Asker) -> None:
    wanted = numbers(20)[::-1]
    job_id, _ = asker.create(wanted)
    job = asker.process.log.get(BulkJob, job_id)
    stored = asker.process.log.recorder.select_events(job_id)
    assert not any(number[1:].encode() in each.state for number in wanted for each in stored)
    clear = asker.process.vault.open(asker.organization_id, job_id, job.created.personal)
    assert msgspec.json.decode(clear, type=PersonalNumbers).phone_numbers == wanted
