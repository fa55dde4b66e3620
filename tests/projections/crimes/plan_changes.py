"""What breaks the invariants of plan changes."""

from uuid import uuid4

import msgspec

from domain.links.plan_change import PlanChange
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crime, LinkForger, first_of

DONE = {"addon_id": "addon-2", "adopted": False}
MICROS = 20_000


def a_change_that_costs_another_sum_than_its_plans(forger: LinkForger) -> int:
    link = forger.active()
    _, requested = forger.ask_for_change(link, "0.02")
    (addition,) = requested.additions
    free = msgspec.structs.replace(addition, price=None)
    return forger.write(forged(requested, additions=[free]))


def a_change_of_nothing(forger: LinkForger) -> int:
    _, requested = forger.ask_for_change(forger.active(), "0")
    return forger.write(forged(requested, additions=[]))


def an_addition_that_is_begun_as_a_removal(forger: LinkForger) -> int:
    change = forger.changing(forger.active(), "0")
    facts = {"index": 0, "attempt": 1, "until": forger.cause.at}
    return forger.write(forger.of_change(change, PlanChange.PlanRemovalStarted, **facts))


def a_step_after_the_one_that_a_change_failed_at(forger: LinkForger) -> int:
    link = forger.active()
    change = forger.changing(link, "0", remove=[first_of(link)])
    forger.start(change)
    forger.write(forger.change_failure(change, settled_at=forger.cause.at))
    forger.write(*forger.step(change, link))
    facts = {"index": 1, "attempt": 1, "until": forger.cause.at}
    return forger.write(forger.of_change(change, PlanChange.PlanAdditionStarted, **facts))


def a_step_that_was_never_begun(forger: LinkForger) -> int:
    change = forger.changing(forger.active(), "0")
    return forger.write(forger.of_change(change, PlanChange.PlanAdditionDone, index=0, **DONE))


def a_step_that_is_done_twice(forger: LinkForger) -> int:
    link, change = forger.begun_change("0", "0")
    forger.write(*forger.step(change, link))
    forger.start(change)
    return forger.write(forger.of_change(change, PlanChange.PlanAdditionDone, index=0, **DONE))


def an_addition_after_its_refund(forger: LinkForger) -> int:
    _, change = forger.begun_change("0.02")
    forger.write(forger.change_failure(change), *forger.change_money_back(change))
    return forger.write(forger.of_change(change, PlanChange.PlanAdditionDone, index=0, **DONE))


def a_failed_change_that_keeps_its_money(forger: LinkForger) -> int:
    _, change = forger.begun_change("0.02")
    return forger.write(forger.change_failure(change, refunds=[]))


def a_change_that_fails_twice(forger: LinkForger) -> int:
    _, change = forger.begun_change("0")
    forger.write(forger.change_failure(change))
    facts = {"code": "DOWN", "index": 0, "refunds": [], "settled_at": None}
    return forger.write(forger.of_change(change, PlanChange.Failed, **facts))


def a_change_that_fails_at_a_step_that_is_done(forger: LinkForger) -> int:
    link, change = forger.begun_change("0", "0")
    forger.write(*forger.step(change, link))
    return forger.write(forger.change_failure(change, index=0))


def a_change_that_fails_when_all_is_done(forger: LinkForger) -> int:
    link, change = forger.begun_change("0")
    forger.write(*forger.step(change, link))
    facts = {"code": "DOWN", "index": 1, "refunds": [], "settled_at": None}
    return forger.write(forger.of_change(change, PlanChange.Failed, **facts))


def a_change_that_finishes_with_open_steps(forger: LinkForger) -> int:
    _, change = forger.begun_change("0")
    return forger.write(forger.of_change(change, PlanChange.Finished))


def a_change_that_moves_before_it_was_requested(forger: LinkForger) -> int:
    _, change = forger.begun_change("0.02")
    facts = {"index": 0, "attempt": 2, "until": forger.cause.at}
    started = forger.of_change(change, PlanChange.PlanAdditionStarted, **facts)
    return forger.write(forged(started, originator_id=uuid4(), originator_version=1))


def a_change_that_moves_to_another_link(forger: LinkForger) -> int:
    _, change = forger.begun_change("0.02")
    facts = {"index": 0, "attempt": 2, "until": forger.cause.at}
    started = forger.of_change(change, PlanChange.PlanAdditionStarted, **facts)
    return forger.write(forged(started, link_id=uuid4()))


CRIMES: dict[Crime, str] = {
    a_change_that_costs_another_sum_than_its_plans: "costs another sum than its plans",
    a_change_of_nothing: "asks for nothing",
    an_addition_that_is_begun_as_a_removal: "begins a step that is not the present one",
    a_step_after_the_one_that_a_change_failed_at: "begins a step that is not the present one",
    a_step_that_was_never_begun: "does a step that it has not begun",
    a_step_that_is_done_twice: "does a step out of order, or twice",
    an_addition_after_its_refund: "adds a plan after it has failed",
    a_failed_change_that_keeps_its_money: "keeps another sum than it added plans for",
    a_change_that_fails_twice: "fails twice, or at a step that is done",
    a_change_that_fails_at_a_step_that_is_done: "fails twice, or at a step that is done",
    a_change_that_fails_when_all_is_done: "fails twice, or at a step that is done",
    a_change_that_finishes_with_open_steps: "finishes with open steps",
    a_change_that_moves_before_it_was_requested: "before it was requested, or at its end",
    a_change_that_moves_to_another_link: "changes its organization or link",
}
