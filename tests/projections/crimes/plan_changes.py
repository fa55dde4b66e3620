"""What breaks the invariants of plan changes."""

from collections.abc import Sequence
from typing import Any

from domain.links.plan_change import PlanChange
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger, first_of


def asked(forger: LinkForger, price: str, **changes: Any) -> int:
    _, requested = forger.ask_for_change(forger.active(), price)
    return forger.write(forged(requested, **changes))


def adds(forger: LinkForger, change: PlanChange) -> int:
    done = {"addon_id": "addon-2", "adopted": False}
    return forger.moves(change, PlanChange.PlanAdditionDone, index=0, **done)


def a_removal_that_is_done_as_an_addition(forger: LinkForger) -> int:
    link = forger.active()
    change = forger.changing(link, remove=[first_of(link)])
    forger.start(change)
    return adds(forger, change)


def fails(forger: LinkForger, change: PlanChange, index: int) -> int:
    facts: dict[str, Any] = {"code": "DOWN", "refunds": [], "settled_at": None}
    return forger.moves(change, PlanChange.Failed, index=index, **facts)


def an_addition_that_is_begun_as_a_removal(forger: LinkForger) -> int:
    change, facts = forger.changing(forger.active(), "0"), {"index": 0, "attempt": 1}
    return forger.moves(change, PlanChange.PlanRemovalStarted, until=forger.cause.at, **facts)


def with_one_done(forger: LinkForger, prices: Sequence[str] = ("0", "0")) -> PlanChange:
    link, change = forger.begun_change(*prices)
    forger.write(*forger.step(change, link))
    return change


def a_step_that_is_done_twice(forger: LinkForger) -> int:
    change = with_one_done(forger)
    forger.start(change)
    return adds(forger, change)


def an_addition_after_its_refund(forger: LinkForger) -> int:
    _, change = forger.begun_change("0.02")
    forger.write(forger.change_failure(change), *forger.change_money_back(change))
    return adds(forger, change)


def a_change_that_fails_twice(forger: LinkForger) -> int:
    _, change = forger.begun_change("0")
    forger.write(forger.change_failure(change))
    return fails(forger, change, 0)


def a_change_that_finishes_twice(forger: LinkForger) -> int:
    link, change = forger.begun_change("0")
    forger.write(*forger.step(change, link), *forger.finish(change, link))
    return forger.moves(change, PlanChange.Finished)


AGAIN = "fails twice, or gives another sum back"
NOT_NEXT = "a step that is not the next one"
NOT_PRESENT = "begins a step that is not the present one"
CRIMES: Crimes = [
    (lambda f: asked(f, "0", additions=[]), "asks for nothing"),
    (an_addition_that_is_begun_as_a_removal, NOT_PRESENT),
    (a_step_that_is_done_twice, NOT_NEXT),
    (a_removal_that_is_done_as_an_addition, "it does another step than the next one"),
    (an_addition_after_its_refund, "or adds after it has failed"),
    (a_change_that_fails_twice, AGAIN),
    (lambda f: fails(f, with_one_done(f, "0"), 1), NOT_NEXT),
    (lambda f: f.moves(f.begun_change("0")[1], PlanChange.Finished), "finishes with open steps"),
    (a_change_that_finishes_twice, "its change was not requested, or has finished"),
]
