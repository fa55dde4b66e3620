"""The plans of a link: changed by one plan change at a time, each removed at most once."""

from uuid import uuid4

import pytest

from domain.ids import derive_id
from domain.links.link import Link
from tests.domain.build import cause
from tests.domain.build_links import (
    ACTIVE,
    LINK,
    LinkStep,
    bought,
    change_opened,
    ends_soon,
    new_link,
    plan_added,
    plan_ended,
    plan_removed,
    plan_started,
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


@pytest.mark.parametrize(
    ("history", "step", "error"),
    [
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


def test_that_a_plan_ends_soon_is_told_once() -> None:
    soon, later = cause(20).at, cause(30).at
    story = active().when(ends_soon(FIRST, soon))
    story.then(fact(Link.ExpiryNear, activation_id=FIRST, expires_at=soon), expiry_told={FIRST})
    story.when(ends_soon(FIRST, later)).then(expiry_told={FIRST})


def test_that_a_plan_has_begun_and_is_over_is_told_once_each() -> None:
    end, later = cause(20).at, cause(30).at
    story = active().when(plan_started(FIRST, end))
    story.then(fact(Link.PlanStarted, activation_id=FIRST, expires_at=end), plan_ends={FIRST: end})
    story.when(plan_started(FIRST, later)).then(plan_ends={FIRST: end})
    story.when(plan_ended(FIRST)).then(fact(Link.PlanEnded, activation_id=FIRST))
    story.when(plan_ended(FIRST)).when(plan_started(FIRST, later)).then(plans_ended={FIRST})


@pytest.mark.parametrize(
    "step",
    [
        used(SECOND, 50),
        ends_soon(SECOND, cause(20).at),
        plan_started(SECOND, cause(20).at),
        plan_ended(SECOND),
    ],
    ids=["usage", "end", "begun", "over"],
)
def test_a_plan_that_the_link_never_had_tells_nothing(step: LinkStep) -> None:
    active().when(step).refused(AssertionError)
