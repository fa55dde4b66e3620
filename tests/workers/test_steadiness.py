"""A clock that was set ahead makes no worker believe that the network's time is over."""

from datetime import timedelta

import pytest

from domain.links.network import AddonUsage
from domain.links.plan_change import PlanChange
from tests.installation import SetClock
from tests.workers.link_checks import check
from tests.workers.link_lab import Lab
from workers.steadiness import SLIP, Steadiness

HOURS_2 = timedelta(hours=2).total_seconds()
MINUTE = timedelta(minutes=1)


class Times:
    """A wall clock and the time that truly passes."""

    def __init__(self) -> None:
        self.wall, self.passed_s = SetClock(), 0.0
        self.steadiness = Steadiness(self.wall, lambda: self.passed_s)

    def forward(self, passed_s: float, wall_s: float) -> None:
        self.passed_s += passed_s
        self.wall.forward(seconds=wall_s)


@pytest.fixture
def times() -> Times:
    return Times()


def test_a_process_believes_what_it_has_seen(times: Times) -> None:
    times.forward(59.9, 59.9)
    assert not times.steadiness.lasts(MINUTE)
    times.forward(0.1, 0.1)
    assert times.steadiness.lasts(MINUTE)


def test_a_clock_may_slip_a_little(times: Times) -> None:
    times.forward(60, 60 + SLIP.total_seconds())
    assert times.steadiness.lasts(MINUTE)


@pytest.mark.parametrize("set_by_s", [-HOURS_2, -1.1, 1.1, HOURS_2])
def test_a_clock_that_is_set_makes_it_begin_anew(times: Times, set_by_s: float) -> None:
    times.forward(600, 600 + set_by_s)
    assert not times.steadiness.lasts(MINUTE)
    times.forward(59.9, 59.9)
    assert not times.steadiness.lasts(MINUTE)
    times.forward(0.1, 0.1)
    assert times.steadiness.lasts(MINUTE)


def addons_of(lab: Lab, change: PlanChange) -> list[AddonUsage]:
    endpoint_id = lab.link(change.link_id).endpoint_id
    assert endpoint_id is not None
    return lab.simulator.usage(endpoint_id, timeout_s=1).addons


def test_a_failed_change_stays_open_until_its_late_addon_was_taken_off(lab: Lab) -> None:
    """Though the clock was set two hours ahead, as if all were long over."""
    link = lab.create()
    ahead = SetClock()

    def passed_s() -> float:
        return (lab.clock() - ahead()).total_seconds()

    lab.process.steadiness = Steadiness(lab.clock, passed_s)
    change_id = lab.request_change(link.id, [], [lab.plan("t3", "1.00")])
    lab.late.later("add_plan", HOURS_2 + 6)
    lab.network.before("add_plan", lambda: lab.expire_change(change_id))
    lab.work_change(change_id)  # It failed while its call was under way, which has its effect yet.
    for clock in (lab.clock, ahead):
        clock.forward(seconds=HOURS_2)
    failed = lab.work_change(change_id)
    assert failed.failure is not None
    assert failed.finished_at is None
    lab.clock.forward(seconds=6)
    lab.late.look()
    assert len(addons_of(lab, failed)) == 2
    assert lab.work_change(change_id).finished_at is not None
    assert len(addons_of(lab, failed)) == 1
    check(lab)


def test_a_clock_that_is_set_between_two_readings_of_it_ends_no_change(lab: Lab) -> None:
    link, sets = lab.create(), list[float]()

    def passed_s() -> float:
        now_s = lab.clock().timestamp()
        if sets:  # The wall clock was read just before.
            lab.clock.forward(seconds=sets.pop())
        return now_s

    lab.process.steadiness = Steadiness(lab.clock, passed_s)
    lab.clock.forward(minutes=5)
    change_id = lab.request_change(link.id, [], [lab.plan("t3", "1.00")])
    lab.late.later("add_plan", HOURS_2 + 6)
    lab.network.before("add_plan", lambda: lab.expire_change(change_id))
    sets.append(HOURS_2)
    failed = lab.work_change(change_id)
    assert not sets
    assert failed.failure is not None
    assert failed.finished_at is None
