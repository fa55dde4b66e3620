"""Whatever happens to a call of a plan change, what was not done is refunded, once."""

from collections.abc import Mapping
from uuid import UUID

import pytest

from domain.errors import IncompleteNetworkAnswer, ProvisioningError
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.provider_errors import Rejected
from tests.workers.link_checks import Books, check
from tests.workers.link_lab import Lab
from tests.workers.network_faults import FAULTS, KILLS, NO_ENDPOINT, REFUSALS, UNKNOWN, arm

ERROR, FAILED = ProvisioningError.code, IncompleteNetworkAnswer.code

# How a change ends whose call meets a fault; None: all of it is done.
OUTCOMES: Mapping[str, Mapping[str, str | None]] = {
    "remove_plan": {**dict.fromkeys(REFUSALS, ERROR), **dict.fromkeys([*UNKNOWN, *KILLS])},
    "add_plan": {
        **dict.fromkeys(REFUSALS, ERROR),
        **dict.fromkeys(NO_ENDPOINT, FAILED),
        **dict.fromkeys([*UNKNOWN, *KILLS]),
    },
}
# Each at the first or the second call of its kind, in turns.
CASES = [(call, fault, n % 2) for call, row in OUTCOMES.items() for n, fault in enumerate(row)]


@pytest.fixture
def link_id(lab: Lab) -> UUID:
    """A link with three plans."""
    link = lab.create()
    lab.change(link.id, add=["t1", "t2"])
    return link.id


def two_and_two(lab: Lab, link_id: UUID) -> UUID:
    """Ask for two plans to be taken off and two to be put on."""
    off = [plan.id for plan in lab.link(link_id).current_activations][:2]
    return lab.request_change(link_id, off, [lab.plan(each, "1.00") for each in ("t3", "t4")])


def code_of(change: PlanChange) -> str | None:
    return change.failure.code if change.failure is not None else None


@pytest.mark.slow
@pytest.mark.parametrize(("call", "fault", "step"), CASES)
def test_a_change_whose_call_fails_is_paid_for_as_far_as_it_was_done(
    lab: Lab, link_id: UUID, call: str, fault: str, step: int
) -> None:
    code = OUTCOMES[call][fault]
    arm(lab.network, call, FAULTS[fault], after_calls=step)
    lab.network.calls.clear()
    change = lab.work_change(two_and_two(lab, link_id))
    lab.settle()
    change = lab.plan_change(change.id)
    done = 4 if code is None else step + (2 if call == "add_plan" else 0)
    assert (code_of(change), change.done) == (code, done)
    assert change.failure is None or len(change.failure.refunds) == min(2, 4 - done)
    left, new = ["eu-1", "t1", "t2"][min(2, done) :], ["t3", "t4"][: max(0, done - 2)]
    assert lab.plans_of(link_id) == left + new
    check(lab)
    assert lab.change(link_id, add=["t5"]).failure is None


def test_a_removal_that_came_after_the_failure_is_kept_and_noted(lab: Lab, link_id: UUID) -> None:
    lab.late.later("remove_plan", 17)
    arm(lab.network, "usage", FAULTS["unavailable"])
    change_id = two_and_two(lab, link_id)
    lab.work_change(change_id)
    lab.clock.forward(seconds=10)
    lab.expire_change(change_id)
    lab.settle()
    change = lab.plan_change(change_id)
    assert (code_of(change), change.removed, change.added) == (ERROR, [], [])  # As it was told.
    assert lab.plans_of(link_id) == ["t1", "t2"]


def left_over(lab: Lab) -> list[Link.PlanLeftOver]:
    events = Books(lab.process.log).events
    return [each for each in events if isinstance(each, Link.PlanLeftOver)]


def test_a_late_plan_that_the_network_does_not_take_off_holds_up_no_further_change(
    lab: Lab, link_id: UUID
) -> None:
    """Nobody pays for it, so it is an incident; no other change takes it for its own."""
    lab.late.later("add_plan", 17)
    arm(lab.network, "add_plan", FAULTS["rejected"], after_calls=1)
    change = lab.change(link_id, add=["t3"])
    lab.network.before("remove_plan", *[Rejected("used")] * 100)
    lab.settle()
    assert lab.plan_change(change.id).finished_at is not None
    assert lab.network.count("remove_plan") == 1
    (told,) = left_over(lab)
    assert (told.originator_id, told.plan.provider_plan_id) == (link_id, "t3")
    assert code_of(lab.change(link_id, add=["t4"])) is None
    arm(lab.network, "add_plan", FAULTS["unknown, not done"])
    again = lab.change(link_id, add=["t3"])
    lab.settle()
    activations = lab.link(link_id).activations.values()
    assert told.addon_id not in {each.addon_id for each in activations}
    assert (code_of(lab.plan_change(again.id)), left_over(lab)) == (None, [told])
    lab.is_odd = True  # A plan is left over.


def test_a_plan_whose_addon_was_never_told_is_removed_all_the_same(lab: Lab) -> None:
    lab.never_tell_addons()
    arm(lab.network, "usage", FAULTS["unavailable"])
    link = lab.create("t1")
    assert link.addon_id is None
    lab.change(link.id, add=["t1"])
    change = lab.change(link.id, remove=[next(iter(link.activations))])
    assert (change.failure, lab.plans_of(link.id)) == (None, ["t1"])


@pytest.mark.parametrize(("look_s", "times"), [(2, [3.0]), (5, [])])
def test_a_removal_has_the_time_that_the_look_before_it_has_left(
    lab: Lab, look_s: int, times: list[float]
) -> None:
    lab.never_tell_addons()
    arm(lab.network, "usage", FAULTS["unavailable"])
    link = lab.create("t1")
    remove, told = lab.simulator.remove_plan, list[float]()

    def timed(*call: str, timeout_s: float) -> None:
        told.append(timeout_s)
        remove(*call, timeout_s=timeout_s)

    lab.simulator.remove_plan = timed  # type: ignore[method-assign]  # A network of this test.
    lab.network.after("usage", lambda: lab.clock.forward(seconds=look_s))
    change = lab.change(link.id, remove=[next(iter(link.activations))])
    assert (told, code_of(change)) == (times, None if times else ERROR)


def test_a_removal_from_an_endpoint_that_has_gone_is_done(lab: Lab, link_id: UUID) -> None:
    endpoint_id = lab.link(link_id).endpoint_id
    assert endpoint_id is not None
    lab.simulator.remove_endpoint(endpoint_id, timeout_s=1.0)
    change = lab.work_change(two_and_two(lab, link_id))
    assert (change.done, code_of(change)) == (2, ERROR)
    assert change.finished_at is not None
    lab.is_odd = True  # Its endpoint has gone.


@pytest.mark.parametrize("call", ["remove_plan", "add_plan"])
def test_a_change_whose_endpoint_has_gone_while_its_outcome_was_unknown_ends(
    lab: Lab, link_id: UUID, call: str
) -> None:
    endpoint_id = lab.link(link_id).endpoint_id
    assert endpoint_id is not None
    arm(lab.network, call, FAULTS["killed after"])
    change_id = two_and_two(lab, link_id)
    lab.work_change(change_id)
    lab.simulator.remove_endpoint(endpoint_id, timeout_s=1.0)
    lab.clock.forward(seconds=15)
    lab.expire_change(change_id)
    lab.settle()
    assert lab.link(link_id).open_change is None
    lab.is_odd = True  # Its endpoint has gone.
