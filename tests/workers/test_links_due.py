"""What is due of links, plan changes and lost orders: in which order, how often, and how fairly."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest

from domain.catalogue.plan import SIMULATED
from tests.domain.buying import Gate
from tests.installation import PATIENCE_S
from tests.workers import link_lab
from tests.workers.link_lab import Lab
from tests.workers.network_faults import FAULTS, arm
from tests.workers.queueing import Queue
from workers import work
from workers.routes import saga_message
from workers.work import AGAIN_MAX, BACKLOG_MAX


class Asked:
    """A worker's beat, whose messages a test looks at."""

    def __init__(self, lab: Lab, network_threads: int = 40) -> None:
        self.lab, self.queue = lab, Queue("provision", 0)
        made: Any = lab.process.due_work
        self.work = replace(made, publisher=self.queue, network_threads=network_threads)

    def beat(self) -> list[UUID]:
        self.lab.process.projector.catch_up()
        self.work.beat()
        return self.taken()

    def taken(self) -> list[UUID]:
        return [stream_id for (stream_id,) in self.queue.taken()]


@pytest.fixture
def asked(lab: Lab) -> Asked:
    return Asked(lab)


def test_a_request_that_nobody_works_on_is_asked_for_within_a_second(
    lab: Lab, asked: Asked
) -> None:
    link_id = lab.request()
    lab.clock.forward(seconds=0.4)
    assert asked.beat() == []
    lab.clock.forward(seconds=0.1)
    assert asked.beat() == [link_id]
    assert Asked(lab).beat() == [], "another worker has asked just now"
    lab.settle()


def test_what_stays_undone_is_asked_for_ever_more_seldom(lab: Lab, asked: Asked) -> None:
    link_id = lab.request()
    lab.clock.forward(seconds=0.5)
    moments = []
    for second in range(56):
        if asked.beat() == [link_id]:
            moments.append(second)
        lab.clock.forward(seconds=1)
    gaps = [after - before for before, after in pairwise(moments)]
    assert gaps == [1, 1, 2, 4, 8, 10, 10, 10]
    lab.settle()


def test_what_has_moved_on_does_not_wait_as_what_it_was(lab: Lab) -> None:
    arm(lab.network, "create_endpoint", FAULTS["killed before"])
    link = lab.create()
    asked = Asked(lab)  # Of the process that came after the kill.
    for seconds in (5, 2, 4):
        lab.clock.forward(seconds=seconds)
        assert asked.beat() == [link.id]
    lab.clock.forward(seconds=5)
    assert lab.work(link.id).failure is not None, "its time was over; now it is cleaned up"
    lab.clock.forward(seconds=1)
    assert asked.beat() == [link.id], "not ten seconds after the last time"
    lab.settle()


@pytest.mark.each_database
def test_what_is_longest_overdue_comes_first_and_the_rest_at_the_next_beat(
    lab: Lab, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "MESSAGES_MAX", 3)
    made = []
    for _ in range(7):
        made.append(lab.request())
        lab.clock.forward(seconds=0.1)
    lab.clock.forward(seconds=2)
    assert [asked.beat() for _ in range(4)] == [made[:3], made[3:6], made[6:], []]
    lab.settle()


def test_the_backlog_of_one_organization_delays_no_other(
    lab: Lab, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "MESSAGES_MAX", 4)
    many = [lab.request() for _ in range(20)]
    lab.clock.forward(seconds=1)
    lab.organization_id = lab.process.organization(link_lab.DEPOSIT)
    few = [lab.request() for _ in range(3)]
    lab.clock.forward(seconds=2)
    assert {*asked.beat()} == {*many[:2], *few[:2]}
    assert {*asked.beat()} == {*many[2:5], few[2]}
    lab.is_odd = True  # Another one has paid as well.


def test_a_queue_with_a_backlog_is_not_filled_further(lab: Lab, asked: Asked) -> None:
    link_id = lab.request()
    lab.clock.forward(seconds=2)
    asked.queue.waiting = BACKLOG_MAX + 1
    assert asked.beat() == []
    asked.queue.waiting = BACKLOG_MAX
    assert asked.beat() == [link_id]
    lab.settle()


def test_a_clock_that_was_set_back_holds_nothing_up(lab: Lab, asked: Asked) -> None:
    first = lab.request()
    lab.clock.forward(hours=2)
    assert asked.beat() == [first]
    lab.clock.forward(hours=-1)
    assert asked.beat() == [first]
    lab.clock.forward(seconds=AGAIN_MAX / timedelta(seconds=1))
    assert asked.beat() == [first]
    lab.settle()


@contextmanager
def held(asked: Asked, organization_id: UUID, network: str = SIMULATED) -> Iterator[None]:
    """Let a thread work for an organization at a network until the end."""
    gate = Gate()
    with ThreadPoolExecutor(1) as thread:
        arguments = network, organization_id, saga_message("link", uuid4()), gate
        working = thread.submit(asked.work.in_turn, *arguments)
        gate.wait()
        yield
        gate.open()
        working.result(PATIENCE_S)


def is_done(asked: Asked, organization_id: UUID, network: str = SIMULATED) -> bool:
    """Do some work; tell whether there was a thread for it."""
    done: list[object] = []
    message = saga_message("link", organization_id)
    asked.work.in_turn(network, organization_id, message, lambda: done.append(message))
    return bool(done)


def test_work_beyond_the_share_holds_no_thread_and_is_asked_for_as_soon_as_it_fits(
    lab: Lab,
) -> None:
    asked, one, other = Asked(lab, network_threads=3), uuid4(), uuid4()
    with held(asked, one):
        assert not is_done(asked, one)
        assert not is_done(asked, one), "a second message of the same work is none"
        assert is_done(asked, other)
        assert asked.taken() == []
    assert asked.taken() == [one]
    assert is_done(asked, one)
    assert asked.taken() == []


def test_a_network_that_hangs_leaves_the_threads_of_the_others(lab: Lab) -> None:
    asked, one, late = Asked(lab, network_threads=2), uuid4(), uuid4()
    with held(asked, one), held(asked, uuid4()):
        assert not is_done(asked, late), "all threads of the network are taken"
        assert is_done(asked, one, "quick")
        assert asked.taken() == [], "a thread of another network is of no use"
    assert asked.taken() == [late]


def test_work_that_fails_gives_its_thread_to_the_next(lab: Lab) -> None:
    asked, one = Asked(lab, network_threads=1), uuid4()

    def fail() -> None:
        assert not is_done(asked, one)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asked.work.in_turn(SIMULATED, one, saga_message("link", uuid4()), fail)
    assert asked.taken() == [one]
    assert is_done(asked, one)


def test_no_more_is_remembered_than_the_bound(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "LEFT_MAX", 2)
    asked = Asked(lab, network_threads=1)
    with held(asked, uuid4()):
        late = [uuid4() for _ in range(5)]
        assert not any(is_done(asked, each) for each in late)
    told = asked.taken()
    for each in told:
        assert is_done(asked, each)
        told += asked.taken()
    assert told == late[:2]


def test_the_work_of_links_and_changes_is_shared_out(lab: Lab) -> None:
    taken: list[tuple[str, UUID, UUID]] = []
    link = lab.create()
    process, owner = lab.process, lab.organization_id

    def note(network: str, organization_id: UUID, message: object, _: object) -> None:
        taken.append((network, organization_id, UUID(message.arguments[0])))  # type: ignore[attr-defined]  # It is one.

    replace(process.provisioning, in_turn=note).work(link.id)
    change_id = lab.request_change(link.id, add=[lab.plan("t1", "1.00")])
    replace(process.plan_changes, in_turn=note).work(change_id)
    assert taken == [(link.network, owner, link.id), (link.network, owner, change_id)]
    lab.settle()
