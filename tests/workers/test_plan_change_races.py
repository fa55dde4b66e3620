"""Who comes between the steps of a plan change: the waiter, other workers, readers of the link."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal
from uuid import UUID

import pytest

from domain.errors import ProvisioningFailed
from tests.faulty_network import Killed
from tests.installation import sqlite_only
from tests.workers.link_checks import check
from tests.workers.link_lab import Lab
from tests.workers.network_faults import FAULTS, arm
from tests.workers.places import Happening, Places, When
from tests.workers.together import together

PLACES_MAX = 60  # Far more than the reads of the longest way; bounds a test that never ends.
CALLS = ["remove_plan", "add_plan", "usage"]
PLANS = {
    "done": ("t3", "t4"),
    "looked up": ("sandbox-lost-reply", "t4"),
    "refused": ("t3", "sandbox-no-endpoint"),
}

Rival = Literal["the waiter", "the waiter, late", "a worker", "a worker that dies", "a reader"]
RIVALS: list[Rival] = [
    "the waiter",
    "the waiter, late",
    "a worker",
    "a worker that dies",
    "a reader",
]


@pytest.fixture
def link_id(lab: Lab) -> UUID:
    return lab.create().id


def a_change(lab: Lab, link_id: UUID, plans: Sequence[str]) -> UUID:
    """Ask for the oldest plan to be taken off and for others."""
    oldest = lab.link(link_id).current_activations[:1]
    wanted = [lab.plan(each, "1.00") for each in plans]
    return lab.request_change(link_id, [plan.id for plan in oldest], wanted)


def rival(lab: Lab, change_id: UUID, kind: Rival) -> Happening:
    """Return what somebody else does in the midst of a step."""
    other = lab.other_process()

    def wait_no_longer() -> None:
        if kind == "the waiter, late":
            lab.clock.forward(seconds=15)
        lab.expire_change(change_id)

    def work() -> None:
        if kind == "a worker that dies":
            lab.network.after("add_plan", Killed())
        try:
            other.plan_changes.work(change_id)
        except Killed:
            return

    if kind == "a reader":
        return lambda: lab.see(lab.plan_change(change_id).link_id)
    return work if kind.startswith("a worker") else wait_no_longer


def numbered(
    lab: Lab, places: Places, link_id: UUID, plans: Sequence[str]
) -> Iterator[tuple[UUID, int]]:
    """Yield a new change for each place of its way, until one has fewer."""
    for number in range(1, PLACES_MAX):
        lab.forget_faults()
        yield a_change(lab, link_id, plans), number
        if places.is_waiting:
            assert number > 2
            return
    raise AssertionError


@pytest.mark.parametrize("way", PLANS)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", RIVALS)
def test_somebody_else_may_come_between_any_two_commits(
    lab: Lab, link_id: UUID, kind: Rival, when: When, way: str
) -> None:
    for change_id, number in numbered(lab, lab.commits, link_id, PLANS[way]):
        lab.commits.at(number, when, rival(lab, change_id, kind))
        lab.work_change(change_id)
        lab.settle()
        check(lab)


@sqlite_only("commits decide who wins, and those are tried on both; the reads are many")
@pytest.mark.parametrize("way", PLANS)
@pytest.mark.parametrize("kind", RIVALS)
def test_somebody_else_may_come_between_any_two_reads(
    lab: Lab, link_id: UUID, kind: Rival, way: str
) -> None:
    for change_id, number in numbered(lab, lab.reads, link_id, PLANS[way]):
        lab.reads.at(number, "after", rival(lab, change_id, kind))
        lab.work_change(change_id)
        lab.reads.pause()
        lab.settle()
        check(lab)


@pytest.mark.parametrize("way", PLANS)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", RIVALS)
def test_somebody_else_may_come_during_any_call(
    lab: Lab, link_id: UUID, kind: Rival, when: When, way: str
) -> None:
    for call in CALLS:
        change_id = a_change(lab, link_id, PLANS[way])
        happening = rival(lab, change_id, kind)
        (lab.network.before if when == "before" else lab.network.after)(call, happening)
        lab.work_change(change_id)
        lab.settle()
        check(lab)
        lab.forget_faults()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("way", PLANS)
def test_a_reader_of_the_link_costs_no_call_and_changes_no_outcome(
    lab: Lab, link_id: UUID, way: str, when: When
) -> None:
    """Whatever the place, the failure that is told is the one that the network has told."""
    quiet = lab.work_change(a_change(lab, link_id, PLANS[way]))
    lab.settle()
    for change_id, number in numbered(lab, lab.commits, link_id, PLANS[way]):
        lab.commits.at(number, when, rival(lab, change_id, "a reader"))
        change = lab.work_change(change_id)
        assert lab.network.count("add_plan") == 2
        assert change.done == quiet.done
        assert (change.failure is None) == (quiet.failure is None)
        if change.failure is not None:
            assert change.failure.code == ProvisioningFailed.code
        assert change.finished_at is not None


def test_a_success_that_comes_after_the_deadline_is_undone(lab: Lab, link_id: UUID) -> None:
    change_id = a_change(lab, link_id, ["t3", "t4"])
    lab.network.after("add_plan", lambda: lab.expire_change(change_id))
    change = lab.work_change(change_id)
    lab.settle()
    change = lab.plan_change(change_id)
    assert (len(change.removed), change.added) == (1, [])
    assert change.failure is not None
    assert len(change.failure.refunds) == 2
    check(lab)


def test_a_worker_that_is_held_up_after_its_intent_no_longer_calls(lab: Lab, link_id: UUID) -> None:
    change_id = lab.request_change(link_id, [], [lab.plan("t3", "1.00")])
    lab.commits.at(1, "after", lambda: end_without_it(lab, change_id))  # The intent.
    lab.work_change(change_id)
    assert lab.network.count("add_plan") == 0
    check(lab)


def test_a_call_that_is_held_up_until_all_is_over_is_undone_by_its_caller(
    lab: Lab, link_id: UUID, caplog: pytest.LogCaptureFixture
) -> None:
    change_id = lab.request_change(link_id, [], [lab.plan("t3", "1.00")])
    lab.network.before("add_plan", lambda: end_without_it(lab, change_id))
    lab.work_change(change_id)
    assert lab.network.count("remove_plan") == 1
    assert "came after its end" in caplog.text
    check(lab)


def test_a_caller_whose_plan_another_worker_has_taken_over_leaves_it_there(
    lab: Lab, link_id: UUID
) -> None:
    change_id, other = (
        lab.request_change(link_id, [], [lab.plan("t3", "1.00")]),
        lab.other_process(),
    )
    lab.network.after("add_plan", lambda: other.plan_changes.work(change_id))
    assert lab.work_change(change_id).failure is None
    assert (lab.network.count("add_plan"), lab.network.count("remove_plan")) == (1, 0)
    check(lab)


@pytest.mark.parametrize("way", PLANS)
def test_workers_of_many_processes_that_begin_at_once_change_the_plans_once(
    lab: Lab, link_id: UUID, way: str
) -> None:
    workers = [lab.other_process() for _ in range(3)]
    for _ in range(3):
        change_id = a_change(lab, link_id, PLANS[way])
        together(*[partial(worker.plan_changes.work, change_id) for worker in workers])
        lab.settle()
        check(lab)


def test_the_waiter_and_the_worker_at_once_end_it_once(lab: Lab, link_id: UUID) -> None:
    worker = lab.other_process()
    for _ in range(5):
        change_id = a_change(lab, link_id, ["t3", "t4"])
        together(
            partial(worker.plan_changes.work, change_id), partial(lab.expire_change, change_id)
        )
        lab.settle()
        check(lab)


def test_a_message_that_comes_again_changes_nothing(lab: Lab, link_id: UUID) -> None:
    done = lab.change(link_id, add=["t3"])
    failed = lab.change(link_id, add=["sandbox-no-endpoint"])
    head, calls = lab.process.log.head(), len(lab.network.calls)
    for _ in range(2):
        lab.work_change(done.id)
        lab.work_change(failed.id)
    assert (lab.process.log.head(), len(lab.network.calls)) == (head, calls)


def test_a_change_goes_on_while_the_link_is_suspended(lab: Lab, link_id: UUID) -> None:
    change_id = a_change(lab, link_id, ["t3", "t4"])
    arm(lab.network, "remove_plan", FAULTS["killed after"])
    lab.network.before("add_plan", lambda: lab.switch(link_id, "suspended"))
    lab.work_change(change_id)
    lab.settle()
    assert lab.plan_change(change_id).failure is None
    assert lab.link(link_id).status == "suspended"
    check(lab)


def end_without_it(lab: Lab, change_id: UUID) -> None:
    """Let a change fail and be cleaned up while its worker sleeps."""
    other = lab.other_process()
    lab.clock.forward(minutes=2)
    lab.expire_change(change_id)
    other.plan_changes.work(change_id)
    assert lab.plan_change(change_id).finished_at is not None
