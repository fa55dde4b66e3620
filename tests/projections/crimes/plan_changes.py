"""What breaks the invariants of plan changes."""

from uuid import uuid4

import msgspec

from domain.accounts.paid_price import Repayment
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


def a_top_up_that_is_not_charged(forger: LinkForger) -> int:
    link = forger.active()
    change, requested = forger.ask_for_change(link, "0.02", "0.02")
    link.open_plan_change(change.id, forger.cause)
    position = forger.write(requested)
    forger.write(*link.collect_events(), forger.top_ups(change)[0])
    return position


def a_top_up_charged_as_an_activation(forger: LinkForger) -> int:
    link = forger.active()
    change, requested = forger.ask_for_change(link, "0.02")
    link.open_plan_change(change.id, forger.cause)
    (charge,) = forger.top_ups(change)
    return forger.write(requested, *link.collect_events(), forged(charge, kind="activation"))


def a_step_that_is_begun_before_its_turn(forger: LinkForger) -> int:
    change = forger.changing(forger.active(), "0", "0")
    facts = {"index": 1, "attempt": 1, "until": forger.cause.at}
    return forger.write(forger.of_change(change, PlanChange.PlanAdditionStarted, **facts))


def an_addition_that_is_begun_as_a_removal(forger: LinkForger) -> int:
    change = forger.changing(forger.active(), "0")
    facts = {"index": 0, "attempt": 1, "until": forger.cause.at}
    return forger.write(forger.of_change(change, PlanChange.PlanRemovalStarted, **facts))


def a_step_that_is_begun_after_a_failure(forger: LinkForger) -> int:
    _, change = forger.begun_change("0")
    forger.write(forger.change_failure(change))
    facts = {"index": 0, "attempt": 2, "until": forger.cause.at}
    return forger.write(forger.of_change(change, PlanChange.PlanAdditionStarted, **facts))


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


def a_step_that_is_done_before_its_turn(forger: LinkForger) -> int:
    _, change = forger.begun_change("0", "0")
    return forger.write(forger.of_change(change, PlanChange.PlanAdditionDone, index=1, **DONE))


def a_step_that_is_done_twice(forger: LinkForger) -> int:
    link, change = forger.begun_change("0", "0")
    forger.write(*forger.step(change, link))
    forger.start(change)
    return forger.write(forger.of_change(change, PlanChange.PlanAdditionDone, index=0, **DONE))


def an_addition_that_is_done_as_a_removal(forger: LinkForger) -> int:
    _, change = forger.begun_change("0")
    return forger.write(forger.of_change(change, PlanChange.PlanRemovalDone, index=0))


def an_addition_after_its_refund(forger: LinkForger) -> int:
    _, change = forger.begun_change("0.02")
    forger.write(forger.change_failure(change), *forger.change_money_back(change))
    return forger.write(forger.of_change(change, PlanChange.PlanAdditionDone, index=0, **DONE))


def a_failed_change_that_keeps_its_money(forger: LinkForger) -> int:
    _, change = forger.begun_change("0.02")
    return forger.write(forger.change_failure(change, refunds=[]))


def a_failed_change_that_gives_more_back(forger: LinkForger) -> int:
    link, change = forger.begun_change("0.02", "0.02")
    forger.write(*forger.step(change, link))
    refunds = [Repayment(MICROS, uuid4()), Repayment(MICROS, uuid4())]
    return forger.write(forger.change_failure(change, refunds=refunds))


def a_refund_of_a_top_up_that_is_not_given(forger: LinkForger) -> int:
    _, change = forger.begun_change("0.02")
    return forger.write(forger.change_failure(change))


def a_refund_of_the_charge_of_another_top_up(forger: LinkForger) -> int:
    link, change = forger.begun_change("0.02", "0.02")
    forger.write(*forger.step(change, link))
    failed = forger.change_failure(change)
    (back,) = forger.change_money_back(change)
    paid = change.requested.additions[0].price
    assert paid is not None
    return forger.write(failed, forged(back, charge_id=paid.transaction_id))


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


def a_change_that_finishes_twice(forger: LinkForger) -> int:
    link, change = forger.begun_change("0.02")
    forger.write(*forger.step(change, link), *forger.finish(change, link))
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
    a_top_up_that_is_not_charged: "was announced and not taken",
    a_top_up_charged_as_an_activation: "has no reason that names it",
    a_step_that_is_begun_before_its_turn: "begins a step that is not the present one",
    an_addition_that_is_begun_as_a_removal: "begins a step that is not the present one",
    a_step_that_is_begun_after_a_failure: "begins a step that is not the present one",
    a_step_after_the_one_that_a_change_failed_at: "begins a step that is not the present one",
    a_step_that_was_never_begun: "does a step that it has not begun",
    a_step_that_is_done_before_its_turn: "does a step out of order, or twice",
    a_step_that_is_done_twice: "does a step out of order, or twice",
    an_addition_that_is_done_as_a_removal: "does a step out of order, or twice",
    an_addition_after_its_refund: "adds a plan after it has failed",
    a_failed_change_that_keeps_its_money: "keeps another sum than it added plans for",
    a_failed_change_that_gives_more_back: "keeps another sum than it added plans for",
    a_refund_of_a_top_up_that_is_not_given: "was announced and not given",
    a_refund_of_the_charge_of_another_top_up: "has no failure that names it",
    a_change_that_fails_twice: "fails twice, or at a step that is done",
    a_change_that_fails_at_a_step_that_is_done: "fails twice, or at a step that is done",
    a_change_that_fails_when_all_is_done: "fails twice, or at a step that is done",
    a_change_that_finishes_with_open_steps: "finishes with open steps",
    a_change_that_finishes_twice: "before it was requested, or at its end",
    a_change_that_moves_before_it_was_requested: "before it was requested, or at its end",
    a_change_that_moves_to_another_link: "changes its organization or link",
}
