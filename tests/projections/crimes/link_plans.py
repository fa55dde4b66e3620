"""What breaks the agreement of the plans of a link with its plan changes."""

from uuid import uuid4

from domain.links.link import Link
from domain.links.plan_change import PlanChange
from tests.domain.build_links import bought
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crime, LinkForger, first_of


def a_change_that_was_asked_for_another_link(forger: LinkForger) -> int:
    change, requested = forger.ask_for_change(forger.active(), "0")
    other = forger.active()
    forger.write(requested)
    return forger.write(forger.fact(other, Link.ChangeOpened, change_id=change.id))


def a_change_beside_another(forger: LinkForger) -> int:
    link = forger.active()
    forger.changing(link, "0.02")
    change, requested = forger.ask_for_change(link, "0")
    forger.write(requested)
    return forger.write(forger.fact(link, Link.ChangeOpened, change_id=change.id))


def a_change_of_a_link_that_is_not_there_yet(forger: LinkForger) -> int:
    link = forger.begun()
    change, requested = forger.ask_for_change(link, "0")
    forger.write(requested)
    return forger.write(forger.fact(link, Link.ChangeOpened, change_id=change.id))


def a_change_that_is_closed_before_its_end(forger: LinkForger) -> int:
    link, change = forger.begun_change("0.02")
    return forger.write(forger.fact(link, Link.ChangeClosed, change_id=change.id))


def a_change_that_is_closed_and_was_never_open(forger: LinkForger) -> int:
    return forger.write(forger.fact(forger.active(), Link.ChangeClosed, change_id=uuid4()))


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
    done = forger.of_change(again, PlanChange.PlanRemovalDone, index=0)
    facts = {"change_id": again.id, "activation_id": first}
    return forger.write(done, forger.fact(link, Link.PlanRemoved, **facts))


def a_usage_that_is_told_again(forger: LinkForger) -> int:
    link = forger.active()
    facts = {"activation_id": first_of(link), "percent": 80}
    forger.write(forger.fact(link, Link.UsageReached, **facts))
    return forger.write(forger.fact(link, Link.UsageReached, **facts))


def a_usage_of_a_plan_that_is_not_there(forger: LinkForger) -> int:
    facts = {"activation_id": uuid4(), "percent": 50}
    return forger.write(forger.fact(forger.active(), Link.UsageReached, **facts))


def an_end_that_is_told_again(forger: LinkForger) -> int:
    link = forger.active()
    facts = {"activation_id": first_of(link), "expires_at": forger.cause.at}
    forger.write(forger.fact(link, Link.ExpiryNear, **facts))
    return forger.write(forger.fact(link, Link.ExpiryNear, **facts))


CRIMES: dict[Crime, str] = {
    a_usage_that_is_told_again: "tells UsageReached",
    a_usage_of_a_plan_that_is_not_there: "which it does not have",
    an_end_that_is_told_again: "tells ExpiryNear",
    a_change_that_was_asked_for_another_link: "that nobody requested for it",
    a_change_beside_another: "opens a plan change beside another",
    a_change_of_a_link_that_is_not_there_yet: "has ChangeOpened while it is begun",
    a_change_that_is_closed_before_its_end: "closes a plan change that has not finished",
    a_change_that_is_closed_and_was_never_open: "closes a plan change that is not open",
    another_plan_than_the_change_has_added: "has PlanAdded which no change has done",
    a_plan_that_comes_after_its_change_was_closed: "has PlanAdded which no change has done",
    an_activation_that_is_removed_twice: "which it does not have",
}
