"""A life may end before or after any commit: the next one brings everything to the same end."""

from collections.abc import Callable
from uuid import UUID

import pytest

from domain.network import NoEndpoint, OutcomeUnknown
from tests.faulty_network import Killed
from tests.workers.link_checks import check
from tests.workers.link_lab import Lab
from tests.workers.places import When, die

PLACES_MAX = 40  # Far more than the commits of the longest way; bounds a test that never ends.

Life = Callable[[], object]


def create(lab: Lab) -> Life:
    plan_id = lab.plan()
    return lambda: lab.work(lab.request(plan_id))


def create_in_vain(lab: Lab) -> Life:
    plan_id = lab.plan("sandbox-no-endpoint")
    return lambda: lab.work(lab.request(plan_id))


def create_too_late(lab: Lab) -> Life:
    """The endpoint is there, but nobody has seen it when the deadline passes."""
    plan_id = lab.plan()

    def life() -> None:
        link_id = lab.request(plan_id)
        lab.network.after("create_endpoint", OutcomeUnknown())
        lab.network.before("find_endpoint", OutcomeUnknown())
        lab.work(link_id)
        lab.clock.forward(seconds=15)
        lab.expire(link_id)

    return life


def a_link_with_three_plans(lab: Lab) -> tuple[UUID, list[UUID]]:
    link = lab.create()
    lab.change(link.id, add=["t1", "t2"])
    return link.id, [plan.id for plan in lab.link(link.id).current_activations]


def change(lab: Lab) -> Life:
    link_id, plans = a_link_with_three_plans(lab)
    wanted = [lab.plan("t3", "1.00"), lab.plan("t4", "1.00")]
    return lambda: lab.work_change(lab.request_change(link_id, plans[:2], wanted))


def change_in_vain(lab: Lab) -> Life:
    """The removal is done and so is the first plan; the second plan is refused."""
    link_id, plans = a_link_with_three_plans(lab)
    wanted = [lab.plan(each, "1.00") for each in ("t3", "sandbox-no-endpoint", "t4")]
    return lambda: lab.work_change(lab.request_change(link_id, plans[:1], wanted))


def change_too_late(lab: Lab) -> Life:
    """The plan is there, but nobody has seen it when the deadline passes."""
    link_id, _ = a_link_with_three_plans(lab)
    wanted = [lab.plan("t3", "1.00"), lab.plan("t4", "1.00")]

    def life() -> None:
        change_id = lab.request_change(link_id, [], wanted)
        lab.network.after("add_plan", OutcomeUnknown())
        lab.network.before("usage", NoEndpoint())
        lab.work_change(change_id)
        lab.clock.forward(seconds=15)
        lab.expire_change(change_id)

    return life


def suspend(lab: Lab) -> Life:
    link_id = lab.create().id
    return lambda: lab.switch(link_id, "suspended")


def reactivate(lab: Lab) -> Life:
    link_id = lab.create().id
    lab.switch(link_id, "suspended")
    return lambda: lab.switch(link_id, "active")


# Each way with the number of its commits, those of the clean-up included.
WAYS: dict[Callable[[Lab], Life], int] = {
    create: 3,
    create_in_vain: 4,
    create_too_late: 5,
    change: 9,
    change_in_vain: 7,
    change_too_late: 4,
    suspend: 2,
    reactivate: 2,
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("way", WAYS)
def test_a_life_that_ends_at_any_commit_loses_nothing(
    lab: Lab, way: Callable[[Lab], Life], when: When
) -> None:
    for place in range(1, PLACES_MAX):
        life = way(lab)
        lab.commits.at(place, when, die)
        lab.live(life)
        lab.settle()
        check(lab)
        if lab.commits.is_waiting:
            assert place == WAYS[way] + 1
            return
        lab.forget_faults()
    raise AssertionError


@pytest.mark.parametrize("way", WAYS)
def test_lives_that_all_end_after_their_first_commit_come_to_the_end_together(
    lab: Lab, way: Callable[[Lab], Life]
) -> None:
    life = way(lab)
    lab.commits.at_each("after", die)
    assert not lab.live(life)
    lab.settle()
    check(lab)


def test_a_kill_ends_a_life_and_not_the_thread_of_its_committer(lab: Lab) -> None:
    link_id = lab.request()
    lab.commits.at(1, "after", die)  # The one with the charge.
    first = lab.process
    with pytest.raises(Killed):
        first.provisioning.work(link_id)
    assert lab.link(link_id).iccid is not None
    first.accounts.deposit(lab.organization_id, 1, "bank-2", first.cause())
