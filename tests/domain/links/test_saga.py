"""The saga: what the log says of a link or a change, and a moment, have exactly one next step."""

from datetime import datetime, timedelta

import pytest

from domain.cause import AHEAD_MAX
from domain.links.link import MAY_FAIL, Link, Stage
from domain.links.plan_change import PlanChange
from domain.links.saga import INTENTS_MAX, Repeat, Step, after_nothing, is_settled, next_step
from tests.domain.build_links import (
    ACTIVE,
    DEADLINE,
    SETTLED_AT,
    ChangeStep,
    LinkStep,
    addition_done,
    begun,
    change_failed,
    endpoint_removed,
    esim_released,
    failed,
    finished,
    new_change,
    new_link,
    ordered,
    ordering,
    removal_done,
    reserved,
    started,
    status_requested,
)

TICK = timedelta(microseconds=1)
UNTIL = DEADLINE - timedelta(seconds=5)
SETTLES_AFTER = SETTLED_AT - UNTIL
LONG_AFTER = DEADLINE + timedelta(days=365)
FAILED: tuple[LinkStep, ...] = (reserved, begun(UNTIL), failed(SETTLED_AT))
ASKED: tuple[LinkStep, ...] = (*ACTIVE, status_requested("suspended", UNTIL))
REMOVED: tuple[ChangeStep, ...] = (started(UNTIL), removal_done)
ADDED: tuple[ChangeStep, ...] = (started(UNTIL), addition_done)
Moments = tuple[Step, Step, Step, Step]


def link_after(*steps: LinkStep) -> Link:
    link = new_link()
    for step in steps:
        step(link)
    return link


def change_after(*steps: ChangeStep) -> PlanChange:
    """A change of one removal and one addition, after these steps."""
    change = new_change("2.00", removals=1)
    for step in steps:
        step(change)
    return change


# For each history the steps before `UNTIL`, between it and the deadline, at the deadline, later.
NOTHING: Moments = (Step.NOTHING,) * 4
START: Moments = (Step.START, Step.START, Step.GIVE_UP, Step.GIVE_UP)
LOOK_UP: Moments = (Step.LOOK_UP, Step.LOOK_UP, Step.GIVE_UP, Step.GIVE_UP)
CLEAN_UP: Moments = (Step.CLEAN_UP,) * 4
TABLE: list[tuple[str, Stage, tuple[LinkStep, ...], Moments]] = [
    ("requested", Stage.REQUESTED, (), START),
    ("reserved", Stage.RESERVED, (reserved,), START),
    ("begun", Stage.ENDPOINT_REQUESTED, (reserved, begun(UNTIL)), LOOK_UP),
    ("active", Stage.ACTIVE, ACTIVE, NOTHING),
    ("ordering", Stage.ORDERING, (ordering(UNTIL),), LOOK_UP),
    ("ordered", Stage.ORDERED, (ordering(UNTIL), ordered), NOTHING),
    ("failed while ordering", Stage.ENDED, (ordering(UNTIL), failed()), NOTHING),
    ("failed, nothing taken", Stage.ENDED, (failed(),), NOTHING),
    ("failed, an eSIM held", Stage.FAILED, (reserved, failed()), CLEAN_UP),
    ("failed, outcome unknown", Stage.FAILED, FAILED, CLEAN_UP),
    ("removed", Stage.ENDPOINT_REMOVED, (*FAILED, endpoint_removed), CLEAN_UP),
    ("released", Stage.ENDED, (*FAILED, endpoint_removed, esim_released), NOTHING),
]
CHANGES: list[tuple[tuple[ChangeStep, ...], Moments]] = [
    ((), START),
    ((started(UNTIL),), LOOK_UP),
    (REMOVED, START),
    ((*REMOVED, started(UNTIL)), LOOK_UP),
    ((*REMOVED, started(UNTIL), change_failed(SETTLED_AT)), CLEAN_UP),
    ((change_failed(), finished), NOTHING),
    ((*REMOVED, *ADDED, finished), NOTHING),
]


@pytest.mark.parametrize(
    ("stage", "history", "steps"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_a_stage_and_a_moment_have_one_next_step(
    stage: Stage, history: tuple[LinkStep, ...], steps: Moments
) -> None:
    link = link_after(*history)
    assert link.stage is stage
    moments = (UNTIL - TICK, UNTIL, DEADLINE, LONG_AFTER)
    assert tuple(next_step(link, moment) for moment in moments) == steps
    assert next_step(link, DEADLINE - TICK) is steps[1]
    assert link.version == link_after(*history).version  # The table only looks.


@pytest.mark.parametrize(("history", "steps"), CHANGES)
def test_a_change_and_a_moment_have_one_next_step(
    history: tuple[ChangeStep, ...], steps: Moments
) -> None:
    moments = (UNTIL - TICK, UNTIL, DEADLINE, LONG_AFTER)
    assert tuple(next_step(change_after(*history), moment) for moment in moments) == steps
    assert next_step(change_after(*history), DEADLINE - TICK) is steps[1]


def test_the_table_has_every_stage() -> None:
    assert {stage for _, stage, _, _ in TABLE} == set(Stage)


def test_the_first_three_stages_are_those_that_a_deadline_ends() -> None:
    for stage in Stage:
        (history, *_) = [row[2] for row in TABLE if row[1] is stage]
        ends = next_step(link_after(*history), LONG_AFTER) is Step.GIVE_UP
        assert ends == (stage in MAY_FAIL)


@pytest.mark.parametrize(
    ("attempts", "now", "step"),
    [
        (1, UNTIL - TICK, Step.WAIT),
        (1, UNTIL, Step.START),
        (1, UNTIL - AHEAD_MAX, Step.WAIT),
        (1, UNTIL - AHEAD_MAX - TICK, Step.START),  # It was begun before a clock was set back.
        (INTENTS_MAX - 1, UNTIL, Step.START),
        (INTENTS_MAX, UNTIL - TICK, Step.WAIT),
        (INTENTS_MAX, UNTIL, Step.GIVE_UP),
        (INTENTS_MAX + 1, LONG_AFTER, Step.GIVE_UP),
    ],
)
def test_a_call_is_begun_again_only_when_the_one_before_is_over_and_not_for_ever(
    attempts: int, now: datetime, step: Step
) -> None:
    link = link_after(reserved, *[begun(UNTIL)] * attempts)
    change = change_after(*[started(UNTIL)] * attempts)
    for work in (link, change):
        assert after_nothing(work, UNTIL, now, SETTLES_AFTER, "safe") is step


@pytest.mark.parametrize(
    ("history", "repeat", "then"),
    [
        ((ordering(UNTIL),), "once_settled", Step.START),
        (ASKED, "never", Step.GIVE_UP),
        ((reserved, begun(UNTIL)), "at_deadline", Step.WAIT),
    ],
)
def test_what_the_network_might_do_twice_waits_at_least_until_it_is_settled(
    history: tuple[LinkStep, ...], repeat: Repeat, then: Step
) -> None:
    link = link_after(*history)
    for now, step in [(UNTIL, Step.WAIT), (SETTLED_AT - TICK, Step.WAIT), (SETTLED_AT, then)]:
        assert after_nothing(link, UNTIL, now, SETTLES_AFTER, repeat) is step


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
    link = link_after(reserved, begun(UNTIL), failed(settled_at))  # Whose call is not repeated.
    assert repeated or is_settled(link, SETTLES_AFTER, now) is settled
