"""A link whose reads always fail at the network: a change of its plans still comes to an end."""

from datetime import timedelta
from uuid import UUID

import pytest

from domain.errors import ProvisioningError
from tests.workers.link_lab import Lab
from tests.workers.network_faults import FAULTS, KILLS, UNKNOWN, arm
from workers.driving import CALL
from workers.plan_changes import UNSEEN

EVER = 10_000
TICK = timedelta(microseconds=1)
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


def wait_long(lab: Lab, rounds: int = 1) -> None:
    """Let hours pass, each with its sweep, in which the network shows nothing."""
    for _ in range(rounds):
        lab.clock.forward(seconds=UNSEEN.total_seconds() + 100)
        lab.sweep()


@pytest.mark.parametrize("fault", [*UNKNOWN, *KILLS])
@pytest.mark.parametrize("call", CALLS)
def test_a_change_whose_outcome_nobody_can_see_ends_all_the_same(
    lab: Lab, link_id: UUID, call: str, fault: str
) -> None:
    arm(lab.network, call, FAULTS[fault])
    change_id = lost(lab, link_id, call)
    wait_long(lab)
    assert lab.plan_change(change_id).finished_at is not None
    assert lab.plans_of(link_id) == ["eu-1", "t1"]
    assert lab.change(link_id, add=["t3"]).failure is None
    lab.is_odd = call == "remove_plan"  # The network has done what nobody saw.


@pytest.mark.parametrize("call", CALLS)
def test_nothing_is_ended_unseen_before_long(lab: Lab, link_id: UUID, call: str) -> None:
    arm(lab.network, call, FAULTS["unknown, done"])
    change = lab.plan_change(lost(lab, link_id, call))
    assert change.intent is not None
    lab.network.calls.clear()
    lab.clock.now = change.intent.until + lab.network.settles_after + UNSEEN - TICK
    lab.sweep()
    assert lab.network.calls == ["usage"]
    assert lab.plan_change(change.id).finished_at is None
    lab.forget_faults()  # The link is seen again.
    lab.settle()


def test_each_repetition_that_fails_waits_as_long_again(lab: Lab, link_id: UUID) -> None:
    arm(lab.network, "add_plan", FAULTS["unavailable"], after_calls=1, times=EVER)
    arm(lab.network, "add_plan", FAULTS["unknown, done"])
    change_id = lost(lab, link_id, "add_plan")
    lab.network.calls.clear()
    for _ in range(5 * 60):
        lab.clock.forward(minutes=1)
        lab.sweep()
    assert lab.network.count("add_plan") == 4
    lab.forget_faults()
    lab.settle()
    assert lab.plan_change(change_id).finished_at is not None


def test_a_worker_that_is_held_up_after_its_intent_does_not_repeat_the_call(
    lab: Lab, link_id: UUID
) -> None:
    arm(lab.network, "add_plan", FAULTS["unknown, done"])
    change_id = lost(lab, link_id, "add_plan")
    lab.clock.forward(seconds=UNSEEN.total_seconds() + 100)
    lab.commits.at(1, "after", lambda: lab.clock.forward(seconds=CALL.total_seconds()))
    lab.network.calls.clear()
    lab.work_change(change_id)
    assert "add_plan" not in lab.network.calls
    wait_long(lab)
    assert lab.plan_change(change_id).finished_at is not None
