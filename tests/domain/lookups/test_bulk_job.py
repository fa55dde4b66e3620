"""A bulk job: slices are started, items end once, failed and cancelled ones are given back."""

from collections.abc import Callable, Sequence

import pytest

from domain.accounts.paid_price import Repayment
from domain.ids import derive_id
from domain.lookups.bulk_job import STARTS_MAX, BulkJob, bulk_job_id
from tests.domain.build import ORGANIZATION, bulk_job, cause, sealed
from tests.story import Story, fact

Step = Callable[[BulkJob], object]


def accepted(total: int = 5, slice_size: int = 2, price: str = "0.01") -> Story[BulkJob]:
    return Story(bulk_job(total, slice_size, price))


def started(slice_index: int) -> Step:
    return lambda job: job.start_slice(slice_index, cause(1))


def completed(slice_index: int, *indexes: int) -> Step:
    return lambda job: job.complete_items(slice_index, indexes, sealed(), cause(2))


def failed(slice_index: int, *indexes: int) -> Step:
    errors = ["The number could not be looked up."] * len(indexes)
    return lambda job: job.fail_items(slice_index, indexes, errors, cause(2))


def finished_if_settled(job: BulkJob) -> None:
    job.finish_if_settled(cause(3))


def cancelled(job: BulkJob) -> Repayment | None:
    return job.cancel(cause(4))


@pytest.mark.parametrize(
    ("total", "size", "slices"),
    [
        (1, 1, [range(1)]),
        (1, 250, [range(1)]),
        (4, 2, [range(2), range(2, 4)]),
        (5, 2, [range(2), range(2, 4), range(4, 5)]),
    ],
)
def test_slices_cover_every_item_once(total: int, size: int, slices: Sequence[range]) -> None:
    job = accepted(total, size).aggregate
    assert [job.items_of(index) for index in range(job.slice_count)] == slices


@pytest.mark.parametrize("slice_index", [3, 1_000, -1, -3])
def test_there_is_nothing_in_a_slice_that_does_not_exist(slice_index: int) -> None:
    assert not accepted().aggregate.open_items(slice_index)
    accepted().given().when(started(slice_index)).refused(AssertionError)


def test_every_start_counts_before_any_work_is_done() -> None:
    story = accepted().given()
    for attempt in range(1, STARTS_MAX + 1):
        assert not story.aggregate.exhausted(1)
        story.when(started(1))
        story.then(fact(BulkJob.SliceStarted, slice_index=1, attempt=attempt))
    assert story.aggregate.exhausted(1)
    assert not story.aggregate.exhausted(0)
    story.when(started(1)).refused(AssertionError)


def test_a_start_that_ends_an_item_does_not_count() -> None:
    story = accepted().given(*[started(1)] * STARTS_MAX)
    assert story.aggregate.exhausted(1)
    story = accepted().given(*[started(1)] * STARTS_MAX, completed(1, 2))
    story.when(started(1))
    story.then(fact(BulkJob.SliceStarted, slice_index=1, attempt=1))


def test_failed_items_give_their_price_back() -> None:
    story = accepted().given(completed(1, 3)).when(failed(0, 1, 0))
    refund = Repayment(20_000, derive_id("refund", story.aggregate.id, 0))
    story.then(fact(BulkJob.ItemsFailed, indexes=[1, 0], refund=refund), failed={0, 1})


def test_refunds_of_one_job_never_share_a_transaction() -> None:
    job = bulk_job(6, 2)
    refunds = [job.fail_items(0, [index], ["no answer"], cause()) for index in (1, 0)]
    refunds += [
        job.fail_items(slice_, job.items_of(slice_), ["no"] * 2, cause()) for slice_ in (1, 2)
    ]
    ids = [refund.transaction_id for refund in refunds if refund]
    assert len(set(ids)) == len(refunds)


def test_a_cancelled_job_ends_with_its_open_items_and_gives_their_price_back() -> None:
    story = accepted().given(completed(0, 1), failed(1, 3)).when(cancelled)
    job = story.aggregate
    refund = Repayment(30_000, derive_id("refund", job.id, 0))
    story.then(
        fact(BulkJob.Cancelled, count=3, refund=refund),
        completed={1},
        failed={3},
        cancelled_count=3,
        finished_at=cause(4).at,
    )
    assert job.open_slices() == []
    assert [paid.given_back_micros for paid in job.paid()] == [40_000]
    assert job.still_open() is None


@pytest.mark.parametrize(
    "step",
    [started(0), completed(0, 0), failed(0, 0), cancelled],
    ids=["start", "end", "fail", "again"],
)
def test_nothing_happens_to_a_cancelled_job(step: Step) -> None:
    story = accepted().given(cancelled).when(step)
    story.refused(AssertionError)
    story.when(finished_if_settled).then(finished_at=cause(4).at)


def test_a_job_that_has_ended_is_not_cancelled() -> None:
    accepted(2, 2).given(completed(0, 0, 1), finished_if_settled).when(cancelled).refused(
        AssertionError
    )


@pytest.mark.parametrize("first", [completed(0, 0), failed(0, 0)], ids=["completed", "failed"])
@pytest.mark.parametrize(
    "second",
    [completed(0, 0), failed(0, 0), completed(0, 1, 0)],
    ids=["completed again", "failed again", "completed with another"],
)
def test_an_item_ends_once(first: Step, second: Step) -> None:
    accepted().given(first).when(second).refused(AssertionError)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(completed(0), id="complete nothing"),
        pytest.param(failed(0), id="fail nothing"),
        pytest.param(completed(0, 0, 0), id="complete an item twice"),
        pytest.param(failed(0, 1, 1), id="fail an item twice"),
        pytest.param(completed(2, 5), id="an item past the end"),
        pytest.param(completed(0, -1), id="an item before the start"),
        pytest.param(
            lambda job: job.fail_items(0, [0, 1], ["one error"], cause()), id="an error is missing"
        ),
    ],
)
def test_what_no_worker_may_ask_for_is_a_bug(step: Step) -> None:
    accepted().given().when(step).refused(AssertionError)


def test_a_job_finishes_with_its_last_item_and_only_once() -> None:
    story = accepted(3, 2).given(completed(0, 0, 1))
    story.when(finished_if_settled).then(finished_at=None)
    story.given(failed(1, 2)).when(finished_if_settled)
    story.then(fact(BulkJob.Finished), finished_at=cause(3).at)
    story.when(finished_if_settled).then(finished_at=cause(3).at)
    assert story.aggregate.open_slices() == []


def test_a_price_and_a_free_job_exclude_each_other() -> None:
    with pytest.raises(AssertionError):
        BulkJob.create(
            bulk_job_id(ORGANIZATION, "key-1"),
            cause(),
            organization_id=ORGANIZATION,
            total_count=1,
            slice_size=1,
            item_price_micros=10_000,
            price=None,
            personal=sealed(),
        )
