"""What breaks the agreement of the plans of a link with its plan changes."""

from typing import Any
from uuid import uuid4

from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from tests.projections.link_forgery import Crimes, LinkForger, first_of


def opened(forger: LinkForger, asked: Link, opening: Link) -> int:
    """Ask for a change of one link, and open it at another, or at one that cannot have it."""
    change, requested = forger.ask_for_change(asked, "0")
    forger.write(requested)
    return forger.does(opening, Link.ChangeOpened, change_id=change.id)


def a_change_that_is_closed_before_its_end(forger: LinkForger) -> int:
    link, change = forger.begun_change("0.02")
    return forger.does(link, Link.ChangeClosed, change_id=change.id)


def an_activation_that_is_removed_twice(forger: LinkForger) -> int:
    link = forger.active()
    first = first_of(link)
    forger.done(forger.changing(link, remove=[first]), link)
    again = forger.changing(link, remove=[first])
    forger.start(again)
    forger.moves(again, PlanChange.PlanRemovalDone, index=0)
    return forger.does(link, Link.PlanRemoved, change_id=again.id, activation_id=first)


def told_twice(forger: LinkForger, kind: type[Event], **facts: Any) -> int:
    link = forger.active()
    for _ in range(2):
        position = forger.does(link, kind, activation_id=first_of(link), **facts)
    return position


AGAIN, NOT_THERE = "says again what was said", "a plan that its link does not have"
UNASKED = "no event before it says so"
CRIMES: Crimes = [
    (lambda f: told_twice(f, Link.UsageReached, percent=80), AGAIN),
    (lambda f: told_twice(f, Link.ExpiryNear, expires_at=f.cause.at), AGAIN),
    (lambda f: told_twice(f, Link.PlanStarted, expires_at=f.cause.at), AGAIN),
    (lambda f: told_twice(f, Link.PlanEnded), AGAIN),
    (
        lambda f: f.does(f.active(), Link.UsageReached, activation_id=uuid4(), percent=50),
        NOT_THERE,
    ),
    (lambda f: opened(f, f.active(), f.active()), UNASKED),
    (a_change_that_is_closed_before_its_end, UNASKED),
    (an_activation_that_is_removed_twice, NOT_THERE),
]
