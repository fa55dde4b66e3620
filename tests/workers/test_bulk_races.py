"""Workers that hold the same slice: one settles it, nothing is looked up or refunded twice."""

from domain.lookups.bulk_commands import SLICE_ITEMS
from tests.installation import CountingProvider, Installation, numbers
from tests.workers.jobs import Work


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
