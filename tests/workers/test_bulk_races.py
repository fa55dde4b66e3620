"""Workers that hold the same slice: one settles it, nothing is looked up or refunded twice."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

from domain.commands.bulk_create import SLICE_ITEMS
from tests.installation import PATIENCE_S, CountingProvider, Installation, Process, numbers
from tests.workers.jobs import Work


def test_two_workers_with_one_slice_settle_it_once(installation: Installation) -> None:
    wanted = numbers(4)
    work = Work(installation, wanted)
    both = Barrier(2, timeout=PATIENCE_S)
    providers = [CountingProvider(down=wanted[:1]) for _ in range(2)]
    for provider in providers:
        provider.on_call(1, both.wait)
    workers = [installation.process(provider=provider) for provider in providers]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda each: each.bulk_lookup.work(work.job_id, 0), workers))
    assert work.starts() == 2
    assert (work.job.completed, work.job.failed) == ({1, 2, 3}, {0})
    assert all(len(provider.asked) == 6 for provider in providers)
    work.check()


def test_a_worker_that_lost_a_race_keeps_its_results_and_never_asks_again(
    installation: Installation,
) -> None:
    wanted = numbers(3 * SLICE_ITEMS)
    work, fast = Work(installation, wanted), CountingProvider()
    other = installation.process(provider=fast)
    slow = CountingProvider(down=wanted[:2])

    def overtake() -> None:
        for slice_index in (1, 2):
            other.bulk_lookup.work(work.job_id, slice_index)

    slow.on_call(1, overtake)
    installation.process(provider=slow).bulk_lookup.work(work.job_id, 0)
    assert len(slow.asked) == SLICE_ITEMS + 2 * 2
    assert sorted(set(slow.asked)) == sorted(wanted[:SLICE_ITEMS])
    assert work.job.failed == {0, 1}
    assert work.job.finished_at is not None
    work.check()


def test_a_worker_that_comes_back_late_changes_nothing(installation: Installation) -> None:
    wanted = numbers(3)
    work, quick = Work(installation, wanted), CountingProvider(down=wanted[:1])
    other = installation.process(provider=quick)
    late = CountingProvider()
    late.on_call(3, lambda: other.bulk_lookup.work(work.job_id, 0))
    installation.process(provider=late).bulk_lookup.work(work.job_id, 0)
    assert (work.job.completed, work.job.failed) == ({1, 2}, {0})
    assert len(work.job.settlements) == 2
    work.check()


def test_a_slice_that_is_given_up_beside_its_last_worker_ends_once(
    installation: Installation,
) -> None:
    work, slow = Work(installation, numbers(3)), CountingProvider()
    other = installation.process(provider=CountingProvider())
    dying = CountingProvider()
    dying.bug = KeyError("a bug of the adapter")
    for _ in range(4):
        try_once(installation, dying, work)
    slow.on_call(1, lambda: other.bulk_lookup.work(work.job_id, 0))
    installation.process(provider=slow).bulk_lookup.work(work.job_id, 0)
    assert work.starts() == 5
    assert work.job.completed | work.job.failed == {0, 1, 2}
    work.check()


def try_once(installation: Installation, provider: CountingProvider, work: Work) -> None:
    try:
        installation.process(provider=provider).bulk_lookup.work(work.job_id, 0)
    except KeyError:
        return
    raise AssertionError(work)


def test_many_workers_on_many_slices_with_many_copies_of_each_message(
    installation: Installation,
) -> None:
    wanted = numbers(4 * SLICE_ITEMS)
    work = Work(installation, wanted)
    providers = [CountingProvider(down=wanted[::100]) for _ in range(4)]
    workers = [installation.process(provider=provider) for provider in providers]
    messages = [(worker, index) for index in range(4) for worker in workers[:3]]
    go = Event()

    def take(message: tuple[Process, int]) -> None:
        go.wait(PATIENCE_S)
        message[0].bulk_lookup.work(work.job_id, message[1])

    with ThreadPoolExecutor(len(messages)) as pool:
        taking = [pool.submit(take, message) for message in messages]
        go.set()
        for each in taking:
            each.result()
    assert work.job.failed == set(range(0, 1000, 100))
    assert work.job.finished_at is not None
    assert len(work.answers()) == 990
    work.check()


def test_a_second_message_for_a_slice_in_hand_is_dropped_uncounted(
    installation: Installation,
) -> None:
    wanted = numbers(3)
    work, provider = Work(installation, wanted), CountingProvider()
    worker = installation.process(provider=provider)
    provider.on_call(1, lambda: worker.lookup_turns.answer(work.job_id, 0))
    worker.lookup_turns.answer(work.job_id, 0)
    assert work.starts() == 1
    assert len(provider.asked) == 3
    assert work.job.completed == {0, 1, 2}
    work.check()
