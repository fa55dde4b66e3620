"""What breaks the agreement of the plans of a link with its plan changes."""

from typing import Any
from uuid import uuid4

from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from tests.domain.build_links import bought
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger, first_of


def opened(forger: LinkForger, asked: Link, opening: Link) -> int:
    """Ask for a change of one link, and open it at another, or at one that cannot have it."""
    change, requested = forger.ask_for_change(asked, "0")
    forger.write(requested)
    return forger.does(opening, Link.ChangeOpened, change_id=change.id)


def a_change_beside_another(forger: LinkForger) -> int:
    link = forger.active()
    forger.changing(link, "0.02")
    return opened(forger, link, link)


def a_change_that_is_closed_before_its_end(forger: LinkForger) -> int:
    link, change = forger.begun_change("0.02")
    return forger.does(link, Link.ChangeClosed, change_id=change.id)


def another_plan_than_the_change_has_added(forger: LinkForger) -> int:
    link, change = forger.begun_change("0.02")
    done, added = forger.step(change, link)
    return forger.write(done, forged(added, plan=bought("0.02", "Another plan")))


def a_plan_that_comes_after_its_change_was_closed(forger: LinkForger) -> int:
    link, change = forger.begun_change("0.02")
    done, added = forger.step(change, link)
    finished, closed = forger.finish(change, link)
    earlier = forged(closed, originator_version=closed.originator_version - 1)
    later = forged(added, originator_version=added.originator_version + 1)
    return forger.write(done, finished, earlier, later)


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


CRIMES: Crimes = [
    (lambda f: told_twice(f, Link.UsageReached, percent=80), "tells UsageReached"),
    (lambda f: told_twice(f, Link.ExpiryNear, expires_at=f.cause.at), "tells ExpiryNear"),
    (lambda f: told_twice(f, Link.PlanStarted, expires_at=f.cause.at), "tells PlanStarted"),
    (lambda f: told_twice(f, Link.PlanEnded), "tells PlanEnded"),
    (
        lambda f: f.does(f.active(), Link.UsageReached, activation_id=uuid4(), percent=50),
        "which it does not have",
    ),
    (lambda f: opened(f, f.active(), f.active()), "that nobody requested for it"),
    (a_change_beside_another, "opens a plan change beside another"),
    (a_change_that_is_closed_before_its_end, "closes a plan change that has not finished"),
    (
        lambda f: f.does(f.active(), Link.ChangeClosed, change_id=uuid4()),
        "closes a plan change that is not open",
    ),
    (another_plan_than_the_change_has_added, "has PlanAdded which no change has done"),
    (a_plan_that_comes_after_its_change_was_closed, "has PlanAdded which no change has done"),
    (an_activation_that_is_removed_twice, "which it does not have"),
]
