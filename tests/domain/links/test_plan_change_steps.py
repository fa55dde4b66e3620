"""The saga of a plan change: what was done and the moment have exactly one next step."""

from datetime import datetime, timedelta

import pytest

from domain.links.plan_change import PlanChange
from domain.links.saga import INTENTS_MAX, Step, after_nothing, is_settled, next_step
from tests.domain.build_links import (
    DEADLINE,
    SETTLED_AT,
    ChangeStep,
    addition_done,
    change_failed,
    finished,
    new_change,
    removal_done,
    started,
)

TICK = timedelta(microseconds=1)
SETTLES_AFTER = SETTLED_AT - (DEADLINE - timedelta(seconds=5))
UNTIL = DEADLINE - timedelta(seconds=5)
REMOVED: tuple[ChangeStep, ...] = (started(UNTIL), removal_done)
ADDED: tuple[ChangeStep, ...] = (started(UNTIL), addition_done)


def change_after(*steps: ChangeStep) -> PlanChange:
    """A change of one removal and one addition, after these steps."""
    change = new_change("2.00", removals=1)
    for step in steps:
        step(change)
    return change


@pytest.mark.parametrize(
    ("history", "in_time", "too_late"),
    [
        pytest.param((), Step.START, Step.GIVE_UP, id="requested"),
        pytest.param((started(UNTIL),), Step.LOOK_UP, Step.GIVE_UP, id="begun"),
        pytest.param(REMOVED, Step.START, Step.GIVE_UP, id="removed"),
        pytest.param((*REMOVED, started(UNTIL)), Step.LOOK_UP, Step.GIVE_UP, id="addition begun"),
        pytest.param(
            (*REMOVED, started(UNTIL), change_failed(SETTLED_AT)),
            Step.CLEAN_UP,
            Step.CLEAN_UP,
            id="failed",
        ),
        pytest.param((change_failed(), finished), Step.NOTHING, Step.NOTHING, id="failed, ended"),
        pytest.param((*REMOVED, *ADDED, finished), Step.NOTHING, Step.NOTHING, id="finished"),
    ],
)
def test_a_change_and_a_moment_have_one_next_step(
    history: tuple[ChangeStep, ...], in_time: Step, too_late: ChangeStep
) -> None:
    change = change_after(*history)
    for moment in (UNTIL - TICK, UNTIL, DEADLINE - TICK):
        assert next_step(change, moment) is in_time
    for moment in (DEADLINE, DEADLINE + timedelta(days=365)):
        assert next_step(change, moment) is too_late


@pytest.mark.parametrize(
    ("attempts", "now", "step"),
    [
        (1, UNTIL - TICK, Step.WAIT),
        (1, UNTIL, Step.START),
        (INTENTS_MAX - 1, UNTIL, Step.START),
        (INTENTS_MAX, UNTIL - TICK, Step.WAIT),
        (INTENTS_MAX, UNTIL, Step.GIVE_UP),
    ],
)
def test_a_step_is_begun_again_only_when_the_call_before_is_over_and_not_for_ever(
    attempts: int, now: datetime, step: ChangeStep
) -> None:
    assert after_nothing(change_after(*[started(UNTIL)] * attempts), now) is step


@pytest.mark.parametrize("now", [UNTIL - TICK, UNTIL, DEADLINE])
def test_an_addition_that_the_network_might_do_twice_is_never_repeated(now: datetime) -> None:
    adding = change_after(*REMOVED, started(UNTIL))
    assert after_nothing(adding, now, may_repeat=False) is Step.WAIT


@pytest.mark.parametrize(
    ("settled_at", "again_until", "now", "settled"),
    [
        (None, None, DEADLINE, True),
        (SETTLED_AT, None, SETTLED_AT - TICK, False),
        (SETTLED_AT, None, SETTLED_AT, True),
        (SETTLED_AT, SETTLED_AT + TICK, SETTLED_AT + SETTLES_AFTER, False),
        (SETTLED_AT, SETTLED_AT + TICK, SETTLED_AT + TICK + SETTLES_AFTER, True),
    ],
)
def test_a_failed_change_is_settled_when_the_network_can_do_nothing_more(
    settled_at: datetime | None, again_until: datetime | None, now: datetime, *, settled: bool
) -> None:
    repeated = [started(again_until)] if again_until is not None else []
    change = change_after(started(UNTIL), change_failed(settled_at), *repeated)
    assert is_settled(change, SETTLES_AFTER, now) is settled


def test_what_follows_nothing_is_asked_only_of_changes_that_wait_for_something() -> None:
    with pytest.raises(AssertionError):
        after_nothing(change_after(), DEADLINE)
    with pytest.raises(AssertionError):
        is_settled(change_after(), SETTLES_AFTER, DEADLINE)
