"""An organization has so many items open and no more; who is refused has paid nothing."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest

from domain.errors import IdempotencyKeyReused, InsufficientBalance, RateLimited
from domain.limiter import OpenItems
from tests.installation import Installation, Process, numbers

ITEMS_MAX = 1_000


@pytest.fixture
def process(installation: Installation) -> Process:
    installation.environment["JOB_ITEMS_OPEN_MAX"] = str(ITEMS_MAX)
    return installation.process()


def create(
    process: Process, organization_id: UUID, count: int, key: str | None = None
) -> tuple[UUID, bool]:
    job, replayed = process.ask_for_job(organization_id, numbers(count), key)
    return job.id, replayed


def test_what_is_beyond_the_bound_is_refused_until_something_has_ended(process: Process) -> None:
    one, other = process.organization("10.00"), process.organization("10.00")
    first, _ = create(process, one, 600, "key-1")
    for _ in range(2):  # Before it is projected and after.
        head = process.log.head()
        with pytest.raises(RateLimited, match="600 of at most 1000 numbers") as refused:
            create(process, one, 401, "key-2")
        assert refused.value.retryable
        assert process.log.head() == head
        process.projector.catch_up()
    create(process, other, 1_000)
    assert create(process, one, 600, "key-1") == (first, True)
    with pytest.raises(IdempotencyKeyReused):
        create(process, one, 599, "key-1")
    process.finish_job(first)
    process.projector.catch_up()
    assert not create(process, one, 1_000, "key-2")[1]


def test_the_bound_comes_before_the_balance_and_what_is_not_paid_takes_no_room(
    process: Process,
) -> None:
    poor = process.organization("0.05")
    for _ in range(3):
        with pytest.raises(InsufficientBalance):
            create(process, poor, 600)
    create(process, poor, 10)
    with pytest.raises(RateLimited):
        create(process, poor, 991)


@pytest.mark.each_database
def test_fifty_jobs_at_once_do_not_pass_the_bound(process: Process) -> None:
    one = process.organization("100.00")

    def ask(_: int) -> str:
        try:
            create(process, one, 100)
        except RateLimited:
            return "refused"
        return "accepted"

    with ThreadPoolExecutor(50) as pool:
        assert Counter(pool.map(ask, range(50))) == {"accepted": 10, "refused": 40}


def test_twins_of_one_key_are_one_job_where_there_is_room_for_one(process: Process) -> None:
    one = process.organization("100.00")
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(create, process, one, 800, "key-1") for _ in range(8)]
        made = {each.result()[0] for each in asked if each.exception() is None}
    assert len(made) == 1
    assert {type(each.exception()) for each in asked} <= {type(None), RateLimited}


def test_a_job_that_the_read_model_shows_is_counted_once() -> None:
    shown = [0, 0]
    bound, one = OpenItems(lambda _: (shown[0], shown[1]), 10), uuid4()
    with bound.accept(one, 6) as accepting:
        accepting.position = 7
    shown[:] = [0, 6]
    with pytest.raises(RateLimited), bound.accept(one, 5):
        pass
    shown[:] = [6, 7]
    with bound.accept(one, 4) as accepting:
        accepting.position = 8
    shown[:] = [0, 8]
    with bound.accept(one, 10):
        pass
