"""One organization holds half of the threads of a worker, and its other work is not lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from domain.catalogue.plan import SIMULATED
from tests.domain.buying import Gate
from tests.installation import PATIENCE_S
from tests.workers.link_lab import Lab
from workers import shares
from workers.shares import Shares


def work_of(done: list[UUID], work_id: UUID, gate: Gate | None = None) -> None:
    if gate is not None:
        gate()
    done.append(work_id)


def park(pool: Shares, organization_id: UUID, work_id: UUID, done: list[UUID]) -> None:
    pool.run(SIMULATED, organization_id, work_id, lambda: work_of(done, work_id))


@contextmanager
def held(pool: Shares, organization_id: UUID, done: list[UUID]) -> Iterator[UUID]:
    """Let a thread work for an organization until the end, and then for what was parked."""
    work_id, gate = uuid4(), Gate()
    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(
            pool.run,
            SIMULATED,
            organization_id,
            work_id,
            lambda: work_of(done, work_id, gate),
        )
        gate.wait()
        yield work_id
        gate.open()
        working.result(PATIENCE_S)


def test_work_beyond_the_share_holds_no_thread_and_is_done_in_its_order() -> None:
    pool, one, other = Shares(3), uuid4(), uuid4()
    done: list[UUID] = []
    more = [uuid4() for _ in range(3)]
    with held(pool, one, done) as first:
        for work_id in (*more, more[0]):  # A second message of the same work is none.
            park(pool, one, work_id, done)
        pool.run(SIMULATED, other, other, lambda: work_of(done, other))
        assert done == [other]
    assert done == [other, first, *more]
    pool.run(SIMULATED, one, one, lambda: work_of(done, one))
    assert done[-1] == one


def test_a_network_that_hangs_leaves_the_threads_of_the_others() -> None:
    pool, one, other, done = Shares(4, networks=2), uuid4(), uuid4(), list[UUID]()
    with held(pool, one, done) as first, held(pool, other, done) as second:
        late = uuid4()
        park(pool, late, late, done)
        assert not done, "all threads of the network are taken"
        pool.run("quick", one, one, lambda: work_of(done, one))
        assert done == [one]
    assert {*done} == {one, first, second, late}


def test_work_that_fails_keeps_no_thread_and_takes_no_other_work_with_it() -> None:
    pool, one, done = Shares(1), uuid4(), list[UUID]()

    def fail() -> None:
        raise ZeroDivisionError

    with held(pool, one, done):
        pool.run(SIMULATED, one, uuid4(), fail)
        pool.run(SIMULATED, one, one, lambda: work_of(done, one))
    assert done[-1] == one
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            pool.run(SIMULATED, one, uuid4(), fail)


def test_no_more_is_parked_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "PARKED_MAX", 2)
    pool, one, done = Shares(1), uuid4(), list[UUID]()
    with held(pool, one, done):
        for _ in range(5):
            park(pool, one, uuid4(), done)
    assert len(done) == 1 + 2


def test_a_thread_goes_back_to_the_queue_after_so_much_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shares, "FURTHER_MAX", 2)
    pool, one, done = Shares(1), uuid4(), list[UUID]()
    with held(pool, one, done):
        for _ in range(3):
            park(pool, one, uuid4(), done)
    assert len(done) == 1 + 2
    pool.run(SIMULATED, one, one, lambda: work_of(done, one))
    assert len(done) == 1 + 2 + 2, "what was left is done by whoever comes next"


@pytest.mark.any_database
def test_the_work_of_links_and_changes_is_shared_out(lab: Lab) -> None:
    class Noted(Shares):
        def run(
            self, network: str, organization_id: UUID, work_id: UUID, work: Callable[[], object]
        ) -> None:
            del work
            taken.append((network, organization_id, work_id))

    taken: list[tuple[str, UUID, UUID]] = []
    link = lab.create()
    process, owner = lab.process, lab.organization_id
    replace(process.provisioning, shares=Noted(1)).work(link.id)
    change_id = lab.request_change(link.id, add=[lab.plan("t1", "1.00")])
    replace(process.plan_changes, shares=Noted(1)).work(change_id)
    assert taken == [(link.network, owner, link.id), (link.network, owner, change_id)]
