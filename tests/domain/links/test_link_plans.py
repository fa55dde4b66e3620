"""The plans of a link: changed by one plan change at a time, each removed at most once."""

from uuid import uuid4

import pytest
from msgspec.structs import replace

from domain.cost import Cost
from domain.ids import derive_id
from domain.links.link import Link
from tests.domain.build import ORGANIZATION, cause
from tests.domain.build_links import (
    ACTIVE,
    CHANGE,
    LINK,
    LinkStep,
    bought,
    change_closed,
    change_opened,
    ends_soon,
    new_link,
    plan_added,
    plan_removed,
    used,
)
from tests.story import Story, fact

FIRST = derive_id("activation", LINK, 0)
SECOND = uuid4()
TOP_UP = bought("2.00", "Europe 1 GB")


def active(*steps: LinkStep) -> Story[Link]:
    return Story(new_link()).given(*ACTIVE, *steps)


def shown(link: Link) -> list[object]:
    return [each.id for each in link.current_activations]


def test_an_opened_change_is_the_only_one() -> None:
    story = active().when(change_opened())
    story.then(fact(Link.ChangeOpened, change_id=CHANGE), open_change=CHANGE)
    story.when(change_opened(uuid4())).refused(AssertionError, open_change=CHANGE)
    story.when(change_opened()).refused(AssertionError)


def test_a_closed_change_makes_room_for_another() -> None:
    story = active(change_opened()).when(change_closed)
    story.then(fact(Link.ChangeClosed, change_id=CHANGE), open_change=None)
    other = uuid4()
    story.when(change_opened(other)).then(fact(Link.ChangeOpened), open_change=other)


def test_an_added_plan_keeps_what_the_network_takes_for_it() -> None:
    costly = replace(TOP_UP, cost=Cost(2_100_000, "EUR"))
    active(change_opened()).when(plan_added(SECOND, costly)).then(
        fact(Link.PlanAdded, cost=Cost(2_100_000, "EUR", "addon-2"))
    )


def test_an_added_plan_comes_after_those_that_are_there() -> None:
    story = active(change_opened()).when(plan_added(SECOND, TOP_UP))
    story.then(
        fact(
            Link.PlanAdded,
            organization_id=ORGANIZATION,
            change_id=CHANGE,
            activation_id=SECOND,
            plan=TOP_UP,
            addon_id="addon-2",
        )
    )
    assert shown(story.aggregate) == [FIRST, SECOND]
    second = story.aggregate.activations[SECOND]
    assert (second.plan, second.bought_at, second.addon_id) == (TOP_UP, cause(8).at, "addon-2")


def test_a_removed_plan_is_no_longer_current_and_still_known() -> None:
    story = active(change_opened(), plan_added(SECOND, TOP_UP)).when(plan_removed(FIRST))
    story.then(fact(Link.PlanRemoved, change_id=CHANGE, activation_id=FIRST))
    assert shown(story.aggregate) == [SECOND]
    assert story.aggregate.activations[FIRST].removed_at == cause(8).at


def test_a_link_without_a_plan_is_active_all_the_same() -> None:
    story = active(change_opened()).when(plan_removed(FIRST))
    story.then(fact(Link.PlanRemoved), is_visible=True, status="active", current_activations=[])


@pytest.mark.parametrize(
    ("history", "step", "error"),
    [
        pytest.param((), plan_added(SECOND, TOP_UP), AssertionError, id="add without a change"),
        pytest.param((), plan_removed(FIRST), AssertionError, id="remove without a change"),
        pytest.param((), change_closed, AssertionError, id="close without a change"),
        pytest.param(
            (change_opened(),), plan_added(FIRST, TOP_UP), AssertionError, id="add it twice"
        ),
        pytest.param(
            (change_opened(), plan_removed(FIRST)),
            plan_added(FIRST, TOP_UP),
            AssertionError,
            id="add it again",
        ),
        pytest.param(
            (change_opened(), plan_removed(FIRST)),
            plan_removed(FIRST),
            AssertionError,
            id="remove it twice",
        ),
        pytest.param((change_opened(),), plan_removed(SECOND), KeyError, id="remove what is not"),
    ],
)
def test_what_no_worker_may_ask_for_is_a_bug(
    history: tuple[LinkStep, ...], step: LinkStep, error: type[Exception]
) -> None:
    story = active(*history)
    before = shown(story.aggregate)
    story.when(step).refused(error)
    assert shown(story.aggregate) == before


def told(percent: int) -> object:
    return fact(Link.UsageReached, activation_id=FIRST, percent=percent)


def test_the_use_of_a_plan_is_told_at_three_shares_once_each_and_in_order() -> None:
    active().when(used(FIRST, 49.9)).then(usage_told={})
    story = active().when(used(FIRST, 50)).then(told(50))
    story.when(used(FIRST, 79.9)).then(usage_told={FIRST: 50})
    story.when(used(FIRST, 100)).then(told(80), told(100))
    story.when(used(FIRST, 100)).then(usage_told={FIRST: 100})
    active().when(used(FIRST, 120)).then(told(50), told(80), told(100))


def test_each_plan_tells_its_own_use() -> None:
    story = active(change_opened(), plan_added(SECOND, TOP_UP), used(FIRST, 100))
    story.when(used(SECOND, 50)).then(
        fact(Link.UsageReached, activation_id=SECOND, percent=50),
        usage_told={FIRST: 100, SECOND: 50},
    )


def test_that_a_plan_ends_soon_is_told_once() -> None:
    soon, later = cause(20).at, cause(30).at
    story = active().when(ends_soon(FIRST, soon))
    story.then(fact(Link.ExpiryNear, activation_id=FIRST, expires_at=soon), expiry_told={FIRST})
    story.when(ends_soon(FIRST, later)).then(expiry_told={FIRST})


@pytest.mark.parametrize(
    "step", [used(SECOND, 50), ends_soon(SECOND, cause(20).at)], ids=["usage", "end"]
)
def test_a_plan_that_the_link_never_had_tells_nothing(step: LinkStep) -> None:
    active().when(step).refused(AssertionError)
