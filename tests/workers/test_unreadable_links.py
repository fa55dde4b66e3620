"""A link whose reads always fail at the network: what it is owed still comes to an end."""

from datetime import timedelta
from uuid import UUID

import pytest

from domain.errors import ProvisioningError
from tests.workers.link_checks import check
from tests.workers.link_lab import Lab
from tests.workers.network_faults import FAULTS, KILLS, REFUSALS, UNKNOWN, arm
from workers.provisioning import UNSEEN_MAX

EVER = 10_000
CALLS = ["add_plan", "remove_plan"]


@pytest.fixture
def link_id(lab: Lab) -> UUID:
    """A link with two plans, which nobody can read any more."""
    link = lab.create()
    lab.change(link.id, add=["t1"])
    arm(lab.network, "usage", FAULTS["unavailable"], times=EVER)
    return link.id


def lost(lab: Lab, link_id: UUID, call: str) -> UUID:
    """Ask for a change of one step, whose reply is lost; return it, failed and not finished."""
    off = [lab.link(link_id).current_activations[0].id] if call == "remove_plan" else []
    on = [lab.plan("t2", "1.00")] if call == "add_plan" else []
    change_id = lab.request_change(link_id, off, on)
    lab.work_change(change_id)
    lab.clock.forward(seconds=15)
    lab.expire_change(change_id)
    change = lab.plan_change(change_id)
    assert change.failure is not None
    assert change.failure.code == ProvisioningError.code
    assert change.finished_at is None
    return change_id


def plans_of(lab: Lab, link_id: UUID) -> list[str]:
    return [each.plan.provider_plan_id for each in lab.link(link_id).current_activations]


@pytest.mark.parametrize("fault", [*UNKNOWN, *KILLS])
@pytest.mark.parametrize("call", CALLS)
def test_a_change_whose_outcome_nobody_can_see_ends_all_the_same(
    lab: Lab, link_id: UUID, call: str, fault: str
) -> None:
    arm(lab.network, call, FAULTS[fault])
    change_id = lost(lab, link_id, call)
    lab.settle()
    assert lab.plan_change(change_id).finished_at is not None
    assert plans_of(lab, link_id) == (["t1"] if call == "remove_plan" else ["eu-1", "t1"])
    check(lab)
    assert lab.change(link_id, add=["t3"]).failure is None


@pytest.mark.parametrize("again", [*REFUSALS, *UNKNOWN, *KILLS])
@pytest.mark.parametrize("step", CALLS)
@pytest.mark.parametrize("fault", UNKNOWN)
def test_what_repeats_it_may_fail_as_well(
    lab: Lab, link_id: UUID, fault: str, step: str, again: str
) -> None:
    arm(lab.network, "add_plan", FAULTS[fault])
    lost(lab, link_id, "add_plan")
    # The network refuses for good what it has not done, and nothing that is safe to repeat.
    if again == "rejected" and (step == "remove_plan" or fault == "unknown, done"):
        again = "unavailable"
    arm(lab.network, step, FAULTS[again])
    lab.settle()
    assert plans_of(lab, link_id) == ["eu-1", "t1"]
    check(lab)


@pytest.mark.parametrize("after_s", [1, 6, 12, 18, 60])
def test_a_repetition_that_is_done_late_is_undone_though_reads_work_again(
    lab: Lab, link_id: UUID, after_s: float
) -> None:
    arm(lab.network, "add_plan", FAULTS["unknown, not done"])
    change_id = lost(lab, link_id, "add_plan")
    lab.late.later("add_plan", min(after_s, lab.network.settles_after.total_seconds()))
    while lab.network.count("add_plan") < 3:  # The first of the fixture, and the lost one.
        lab.clock.forward(seconds=2)
        lab.sweep()
    lab.forget_faults()  # Now the network shows the link, and the plan is not there yet.
    assert lab.plan_change(change_id).finished_at is None
    lab.settle()
    assert lab.plan_change(change_id).finished_at is not None
    check(lab)


def test_nothing_is_repeated_before_the_lost_call_can_have_no_effect(
    lab: Lab, link_id: UUID
) -> None:
    arm(lab.network, "add_plan", FAULTS["unknown, done"])
    change = lab.plan_change(lost(lab, link_id, "add_plan"))
    assert change.failure is not None
    assert change.failure.settled_at is not None
    lab.network.calls.clear()
    while lab.clock() < change.failure.settled_at:
        lab.sweep()
        assert set(lab.network.calls) <= {"usage"}
        lab.clock.forward(seconds=1)
    lab.settle()
    assert [each for each in lab.network.calls if each != "usage"] == ["add_plan", "remove_plan"]


def test_a_top_up_with_the_unreachable_plan_of_the_sandbox_leaves_the_link_open_to_others(
    lab: Lab,
) -> None:
    link = lab.create("sandbox-unreachable")
    change = lab.change(link.id, add=["sandbox-lost-reply"])
    lab.clock.forward(seconds=15)
    lab.expire_change(change.id)
    lab.settle()
    assert lab.link(link.id).open_change is None
    assert lab.change(link.id, add=["t1"]).failure is None


def test_a_status_that_nobody_can_see_stays_the_last_known_one(lab: Lab, link_id: UUID) -> None:
    arm(lab.network, "suspend", FAULTS["killed after"])
    assert not lab.live(lambda: lab.switch(link_id, "suspended"))
    intent = lab.link(link_id).status_intent
    assert intent is not None
    lab.clock.now = intent.until + UNSEEN_MAX - timedelta(seconds=1)
    lab.work(link_id)
    assert lab.link(link_id).status_intent is not None
    lab.clock.forward(seconds=1)
    lab.work(link_id)
    assert (lab.link(link_id).status_intent, lab.link(link_id).status) == (None, "active")
    lab.switch(link_id, "suspended")  # It takes another order.
    assert lab.link(link_id).status == "suspended"
