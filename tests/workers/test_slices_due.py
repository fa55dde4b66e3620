"""No backlog of one organization delays another's job, and lost messages lose no work."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from app.adapters.remote.limits import PAUSE_S_MAX
from app.settings import LOOKUP_THREADS
from domain.lookups.bulk_job import SLICE_ITEMS, STARTS_MAX, BulkJob
from domain.lookups.ports import Found
from domain.provider_errors import NotNow
from projections.audit.auditor import check_log
from projections.stores.counters import SLICES
from tests.domain.buying import Gate
from tests.installation import (
    CountingProvider,
    Installation,
    Process,
    SetClock,
    numbers,
    wait_until,
)
from tests.workers.queueing import working
from workers.bulk import EXHAUSTED
from workers.routes import slice_message
from workers.work import LEASE, PAUSES


@pytest.fixture
def process(installation: Installation, clock: SetClock, provider: CountingProvider) -> Process:
    return installation.process(clock, provider)


def started(process: Process) -> list[tuple[UUID, tuple[UUID, int]]]:
    """Return whose slices were started, in their order."""
    return [
        (event.organization_id, (event.originator_id, event.slice_index))
        for event in process.events(BulkJob.SliceStarted)
    ]


def hold(process: Process, organization_id: UUID, job_id: UUID, until: datetime) -> None:
    """Take the first slice of a job as another worker."""
    key = f"{job_id.hex} 0 {organization_id.hex}"
    assert process.counters.claim(SLICES, key, uuid4().hex, until)


def is_finished(process: Process, job_id: UUID) -> bool:
    return process.log.get(BulkJob, job_id).finished_at is not None


@pytest.mark.each_database
def test_organizations_take_turns_whoever_came_first_and_whatever_a_message_names(
    process: Process,
) -> None:
    owners = [process.organization() for _ in range(3)]
    first, second, third = owners
    jobs = [process.create_job(first, numbers(4 * SLICE_ITEMS)) for _ in range(2)]
    process.create_job(second, numbers(2 * SLICE_ITEMS))
    process.create_job(third, numbers(1))
    process.projector.catch_up()
    for _ in range(11):
        process.due_work.answer(jobs[0], 0)  # Always the same bell.
        process.projector.catch_up()
    told = started(process)
    assert {owner for owner, _ in told[:3]} == set(owners)
    assert {owner for owner, _ in told[3:5]} == {first, second}
    assert [each for owner, each in told if owner == first] == [
        (job_id, index) for job_id in jobs for index in range(4)
    ]
    process.due_work.answer(jobs[0], 0)  # One bell too many.
    assert len(started(process)) == 11
    assert check_log(process.log).failures == []


def test_a_slice_that_is_newer_than_the_read_model_is_worked_on_by_its_own_message(
    process: Process,
) -> None:
    old = process.create_job(process.organization(), numbers(1))
    process.projector.catch_up()
    new = process.create_job(process.organization(), numbers(1))
    process.due_work.answer(new, 0)
    assert [job_id for _, (job_id, _) in started(process)] == [new]
    process.due_work.answer(new, 0)
    assert [job_id for _, (job_id, _) in started(process)] == [new, old]


@pytest.mark.each_database
def test_a_slice_of_a_killed_worker_is_free_after_its_lease(
    process: Process, installation: Installation
) -> None:
    organization_id = process.organization()
    job_id = process.create_job(organization_id, numbers(1))
    process.projector.catch_up()
    hold(process, organization_id, job_id, process.time() + LEASE)
    other = installation.process(process.time, CountingProvider())
    process.time.forward(seconds=LEASE.total_seconds() - 0.001)
    other.due_work.answer(job_id, 0)
    other.due_work.beat()
    assert (started(process), other.publisher.backlog("lookup")) == ([], 0)
    process.time.forward(seconds=0.001)
    other.due_work.beat()
    assert other.publisher.backlog("lookup") == 1
    other.due_work.answer(job_id, 0)
    assert is_finished(process, job_id)


@pytest.mark.each_database
def test_a_clock_that_was_set_back_keeps_no_slice(process: Process) -> None:
    organization_id = process.organization()
    job_id = process.create_job(organization_id, numbers(1))
    hold(process, organization_id, job_id, process.time() + 1_001 * LEASE)
    process.due_work.answer(job_id, 0)
    assert is_finished(process, job_id)


@pytest.mark.each_database
def test_a_slice_in_hand_is_taken_by_no_other_process_and_here_not_even_when_it_lapses(
    process: Process, provider: CountingProvider, installation: Installation
) -> None:
    job_id = process.create_job(process.organization(), numbers(1))
    process.projector.catch_up()
    other = installation.process(process.time, CountingProvider())

    def last() -> None:
        for _ in range(5):
            process.time.forward(seconds=LEASE.total_seconds() / 2)
            process.due_work.beat()
            other.due_work.answer(job_id, 0)
        process.time.forward(seconds=LEASE.total_seconds() + 1)
        process.due_work.answer(job_id, 0)

    provider.on_call(1, last)
    process.due_work.answer(job_id, 0)
    assert len(started(process)) == 1
    assert is_finished(process, job_id)


def test_a_store_that_is_lost_costs_a_second_lookup_and_no_second_settlement(
    process: Process, provider: CountingProvider, installation: Installation
) -> None:
    job_id = process.create_job(process.organization(), numbers(3))
    other_provider = CountingProvider(down=[numbers(1)[0]])
    other = installation.process(process.time, other_provider)

    def lose() -> None:
        process.counters.clear(SLICES)
        other.due_work.answer(job_id, 0)

    provider.on_call(1, lose)
    process.due_work.answer(job_id, 0)
    assert [len(set(each.asked)) for each in (provider, other_provider)] == [3, 3]
    job = process.log.get(BulkJob, job_id)
    assert (job.completed, job.failed) == ({1, 2}, {0})
    assert check_log(process.log).failures == []


def test_a_slice_that_fails_rests_ever_longer_and_is_given_up_after_minutes(
    process: Process, provider: CountingProvider
) -> None:
    job_id = process.create_job(process.organization(), numbers(1))
    process.projector.catch_up()
    provider.bug = KeyError("a bug of the adapter")
    for rest in PAUSES:
        with pytest.raises(KeyError):
            process.due_work.answer(job_id, 0)
        process.time.forward(seconds=rest.total_seconds() - 0.001)
        process.due_work.answer(job_id, 0)  # It finds nothing.
        process.time.forward(seconds=0.001)
    with pytest.raises(KeyError):
        process.due_work.answer(job_id, 0)
    process.time.forward(minutes=5)
    process.due_work.answer(job_id, 0)
    job = process.log.get(BulkJob, job_id)
    assert (len(started(process)), job.failed) == (STARTS_MAX, {0})
    (failed,) = process.events(BulkJob.ItemsFailed)
    assert failed.errors == [EXHAUSTED]
    assert job.finished_at is not None


class HoldingProvider(CountingProvider):
    """Says "not now" about some numbers."""

    def __init__(self, held: list[str]) -> None:
        super().__init__()
        self.held = held

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:
        if phone_number in self.held:
            raise NotNow
        return super().look_up(organization_id, phone_number)


@pytest.mark.parametrize("ends_after", [2, 99])
def test_what_a_provider_holds_back_rests_and_the_others_are_answered_once(
    installation: Installation, clock: SetClock, ends_after: int
) -> None:
    """A hold lasts five minutes at most; one that does not end ends in a refund, as an outage."""
    wanted = numbers(4)
    provider = HoldingProvider(wanted[:2])
    process = installation.process(clock, provider)
    job_id = process.create_job(process.organization(), wanted)
    process.projector.catch_up()
    # The first start ends items, so it does not count.
    for count, rest in enumerate((PAUSES[0], *PAUSES), 1):
        process.due_work.answer(job_id, 0)
        process.projector.catch_up()
        job = process.log.get(BulkJob, job_id)
        assert (job.completed, job.failed) == ({2, 3}, set())
        if count == ends_after:
            provider.held = []
        clock.forward(seconds=rest.total_seconds() - 0.001)
        process.due_work.beat()
        process.due_work.answer(job_id, 0)  # It finds nothing.
        assert len(started(process)) == count
        clock.forward(seconds=0.001)
        if count == ends_after:
            break
    process.due_work.answer(job_id, 0)
    job = process.log.get(BulkJob, job_id)
    assert job.failed == (set() if ends_after == 2 else {0, 1})
    assert job.finished_at is not None
    assert len(provider.asked) == len(set(provider.asked)) == len(job.completed)
    assert check_log(process.log).failures == []
    assert sum(PAUSES, timedelta()).total_seconds() > PAUSE_S_MAX


def test_a_slice_that_a_provider_lets_through_bit_by_bit_is_answered_whole(
    installation: Installation, clock: SetClock
) -> None:
    wanted = numbers(9)
    provider = HoldingProvider(wanted)
    process = installation.process(clock, provider)
    job_id = process.create_job(process.organization(), wanted)
    process.projector.catch_up()
    while provider.held:
        provider.held = provider.held[1:]  # One call more is allowed.
        clock.forward(minutes=5)
        process.due_work.answer(job_id, 0)
    job = process.log.get(BulkJob, job_id)
    assert (len(job.completed), job.failed) == (9, set())


class GatedProvider(CountingProvider):
    """Delays one organization."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self.gate = gate
        self.slow: UUID | None = None

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:
        if organization_id == self.slow:
            self.gate()
        return super().look_up(organization_id, phone_number)


@pytest.mark.parametrize("threads", [1, LOOKUP_THREADS])
def test_one_organization_holds_half_of_the_threads_and_loses_no_message(
    installation: Installation, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.bootstrap.container.LOOKUP_THREADS", threads)
    share = max(1, threads // 2)
    gate = Gate()
    provider = GatedProvider(gate)
    process = installation.process(provider=provider)
    provider.slow = process.organization()
    slow = [process.create_job(provider.slow, numbers(4 * SLICE_ITEMS)) for _ in range(2)]
    quick = process.create_job(process.organization(), numbers(1))
    process.projector.catch_up()
    for job_id in slow:
        for index in range(4):
            process.publisher.publish(slice_message(job_id, index))
    process.publisher.publish(slice_message(quick, 0))
    with working(process, threads):
        if threads > 1:
            wait_until(lambda: is_finished(process, quick))
            wait_until(lambda: len(started(process)) == share + 1)
            wait_until(lambda: process.publisher.backlog("lookup") == 0)  # None holds a thread.
            assert len(started(process)) == share + 1
        gate.open()
        wait_until(lambda: all(is_finished(process, each) for each in (*slow, quick)))
    assert len(started(process)) == 9
    assert check_log(process.log).failures == []


def test_what_only_its_message_tells_of_is_not_lost_beyond_the_share(
    installation: Installation,
) -> None:
    gate = Gate()
    provider = GatedProvider(gate)
    process = installation.process(provider=provider)
    provider.slow, other = process.organization(), process.organization()
    slow = [process.create_job(provider.slow, numbers(4 * SLICE_ITEMS)) for _ in range(2)]
    for job_id in slow:
        for index in range(4):
            process.publisher.publish(slice_message(job_id, index))
    with working(process):
        wait_until(lambda: process.publisher.backlog("lookup") == 0)
        quick = process.create_job(other, numbers(1))
        process.publisher.publish(slice_message(quick, 0))
        wait_until(lambda: is_finished(process, quick))
        gate.open()
        wait_until(lambda: all(is_finished(process, each) for each in slow))
    assert len(started(process)) == 9
