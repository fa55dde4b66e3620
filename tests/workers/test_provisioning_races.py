"""The request that waits, other workers and doubled messages: one of them wins, nobody is hurt."""

from collections.abc import Iterator
from functools import partial
from typing import Literal
from uuid import UUID

import pytest

from domain.errors import ProvisioningError
from domain.link_events import Stage
from domain.network import OutcomeUnknown
from domain.ports import Unavailable
from tests.faulty_network import Killed
from tests.installation import sqlite_only
from tests.workers.link_checks import check
from tests.workers.link_lab import Lab
from tests.workers.places import Happening, Places, When
from tests.workers.together import together

PLACES_MAX = 60  # Far more than the reads of the longest way; bounds a test that never ends.
CALLS = ["available_esims", "lpa", "create_endpoint", "find_endpoint", "release_esim"]

Rival = Literal["the waiter", "the waiter, late", "a worker", "a worker that dies"]
RIVALS: list[Rival] = ["the waiter", "the waiter, late", "a worker", "a worker that dies"]


def rival(lab: Lab, link_id: UUID, kind: Rival) -> Happening:
    """Return what somebody else does with a link in the midst of a step."""
    other = lab.other_process()

    def wait_no_longer() -> None:
        if kind == "the waiter, late":
            lab.clock.forward(seconds=15)
        lab.expire(link_id)

    def work() -> None:
        if kind == "a worker that dies":
            lab.network.after("create_endpoint", Killed())
        try:
            other.provisioning.work(link_id)
        except Killed:
            return

    return wait_no_longer if kind.startswith("the waiter") else work


def numbered(lab: Lab, places: Places, plan: str) -> Iterator[tuple[UUID, int]]:
    """Yield a new link for each place of its way, until one has fewer."""
    for number in range(1, PLACES_MAX):
        lab.forget_faults()
        yield lab.request(lab.plan(plan)), number
        if places.is_waiting:
            assert number > 2
            return
    raise AssertionError


@pytest.mark.parametrize("plan", ["eu-1", "sandbox-lost-reply", "sandbox-no-endpoint"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", RIVALS)
def test_somebody_else_may_come_between_any_two_commits(
    lab: Lab, kind: Rival, when: When, plan: str
) -> None:
    for link_id, number in numbered(lab, lab.commits, plan):
        lab.commits.at(number, when, rival(lab, link_id, kind))
        lab.work(link_id)
        lab.settle()
        check(lab)


@sqlite_only("commits decide who wins, and those are tried on both; the reads are many")
@pytest.mark.parametrize("plan", ["eu-1", "sandbox-lost-reply", "sandbox-no-endpoint"])
@pytest.mark.parametrize("kind", RIVALS)
def test_somebody_else_may_come_between_any_two_reads(lab: Lab, kind: Rival, plan: str) -> None:
    for link_id, number in numbered(lab, lab.reads, plan):
        lab.reads.at(number, "after", rival(lab, link_id, kind))
        lab.work(link_id)
        lab.reads.pause()
        lab.settle()
        check(lab)


@pytest.mark.parametrize("plan", ["eu-1", "sandbox-lost-reply", "sandbox-no-endpoint"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", RIVALS)
def test_somebody_else_may_come_during_any_call(
    lab: Lab, kind: Rival, when: When, plan: str
) -> None:
    for call in CALLS:
        link_id = lab.request(lab.plan(plan))
        happening = rival(lab, link_id, kind)
        (lab.network.before if when == "before" else lab.network.after)(call, happening)
        lab.work(link_id)
        lab.settle()
        check(lab)
        lab.forget_faults()


def test_a_success_that_comes_after_the_deadline_is_undone(lab: Lab) -> None:
    link_id = lab.request()
    lab.network.after("create_endpoint", lambda: lab.expire(link_id))
    link = lab.work(link_id)
    assert link.failure is not None
    assert link.failure.code == ProvisioningError.code
    assert link.stage is Stage.ENDED
    assert lab.network.count("remove_endpoint") == 1
    check(lab)


def test_a_deadline_that_comes_after_the_success_changes_nothing(lab: Lab) -> None:
    link = lab.create()
    head = lab.process.log.head()
    lab.clock.forward(seconds=15)
    lab.expire(link.id)
    assert lab.process.log.head() == head


def test_a_worker_that_finds_no_esim_does_not_fail_the_link_of_one_that_did(lab: Lab) -> None:
    link_id, other = lab.request(), lab.other_process()

    def be_overtaken() -> None:
        lab.network.after("create_endpoint", Killed())
        with pytest.raises(Killed):
            other.provisioning.work(link_id)
        raise Unavailable

    lab.network.before("available_esims", be_overtaken)
    assert lab.work(link_id).stage is Stage.ACTIVE
    assert lab.network.count("create_endpoint") == 1
    check(lab)


def test_a_worker_that_is_held_up_after_its_intent_no_longer_calls(lab: Lab) -> None:
    link_id = lab.request()

    lab.commits.at(1, "after", lambda: end_without_it(lab, link_id))  # The intent.
    assert lab.work(link_id).stage is Stage.ENDED
    assert lab.network.count("create_endpoint") == 0
    check(lab)


def test_a_worker_that_wakes_up_when_all_is_over_does_nothing(lab: Lab) -> None:
    link_id = lab.request()
    lab.network.before("create_endpoint", Killed())
    lab.work(link_id)
    lab.clock.forward(seconds=15)
    lab.reads.at(1, "after", lambda: end_without_it(lab, link_id))
    assert lab.work(link_id).stage is Stage.ENDED
    check(lab)


def test_a_call_that_is_held_up_until_all_is_over_is_undone_by_its_caller(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    link_id = lab.request()

    lab.network.before("create_endpoint", lambda: end_without_it(lab, link_id))
    lab.work(link_id)
    assert lab.network.count("remove_endpoint") == 1
    assert "came after its end" in caplog.text
    check(lab)


def test_a_loser_of_the_clean_up_leaves_the_next_holder_of_the_esim_alone(lab: Lab) -> None:
    link_id = lab.request(lab.plan("sandbox-no-endpoint"))
    other, iccid = lab.other_process(), ""
    next_id: list[UUID] = []

    def overtake() -> None:
        nonlocal iccid
        other.provisioning.work(link_id)
        iccid = lab.link(link_id).iccid or ""
        lab.only(iccid)
        next_id.append(lab.request())
        other.provisioning.work(next_id[0])

    lab.network.after("find_endpoint", overtake)
    assert lab.work(link_id).stage is Stage.ENDED
    holder = lab.link(next_id[0])
    assert (holder.iccid, holder.stage) == (iccid, Stage.ACTIVE)
    check(lab)


@pytest.mark.parametrize("plan", ["eu-1", "sandbox-lost-reply", "sandbox-no-endpoint"])
def test_workers_of_many_processes_that_begin_at_once_make_one_link(lab: Lab, plan: str) -> None:
    workers = [lab.other_process() for _ in range(3)]
    for _ in range(3):
        link_id = lab.request(lab.plan(plan))
        together(*[partial(worker.provisioning.work, link_id) for worker in workers])
        lab.settle()
        check(lab)


def test_threads_of_one_process_that_have_the_same_message_make_one_link(lab: Lab) -> None:
    process = lab.other_process()
    link_id = lab.request()
    together(*[partial(process.provisioning.work, link_id)] * 4)
    lab.settle()
    assert lab.link(link_id).stage is Stage.ACTIVE
    check(lab)


def test_the_waiter_and_the_worker_at_once_end_it_once(lab: Lab) -> None:
    worker = lab.other_process()
    for _ in range(5):
        link_id = lab.request()
        together(partial(worker.provisioning.work, link_id), partial(lab.expire, link_id))
        lab.settle()
        check(lab)


def test_the_fifth_creation_without_an_outcome_is_the_last(lab: Lab) -> None:
    lab.network.before("create_endpoint", *[OutcomeUnknown() for _ in range(20)])
    link_id = lab.request(deadline_s=300)
    lab.settle()
    link = lab.link(link_id)
    assert lab.network.count("create_endpoint") == link.attempts == 5
    assert link.failure is not None
    assert link.failure.timestamp < link.requested.deadline
    check(lab)


def test_a_look_up_that_is_overtaken_by_the_caller_itself_adopts_nothing_twice(lab: Lab) -> None:
    link_id, other = lab.request(), lab.other_process()
    lab.network.after("create_endpoint", lambda: other.provisioning.work(link_id))
    assert lab.work(link_id).stage is Stage.ACTIVE
    assert (lab.network.count("create_endpoint"), lab.network.count("find_endpoint")) == (1, 1)
    check(lab)


def end_without_it(lab: Lab, link_id: UUID) -> None:
    """Let a link fail and be cleaned up while its worker sleeps."""
    lab.clock.forward(minutes=2)
    lab.expire(link_id)
    lab.other_process().provisioning.work(link_id)
    assert lab.link(link_id).stage is Stage.ENDED
