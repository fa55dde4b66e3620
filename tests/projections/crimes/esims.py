"""What breaks the rule that one link at a time holds an eSIM."""

from uuid import uuid4

from domain.links.esim import Esim
from domain.links.link import Link
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crime, LinkForger

ICCID = "8988247000000000017"


def taken_by(forger: LinkForger, holder: Link) -> Link:
    """A new link that takes the eSIM of another, by its own words."""
    taker = forger.requested("0")
    facts = {"iccid": holder.iccid, "sponsor_profile": None}
    forger.write(forger.fact(taker, Link.EsimReserved, **facts))
    return taker


def an_esim_that_a_live_link_holds(forger: LinkForger) -> int:
    taken_by(forger, forger.active())
    return forger.process.log.head()


def another_esim_than_the_link_has_taken(forger: LinkForger) -> int:
    link = forger.requested("0")
    taken, *_ = forger.reservation(link)
    return forger.write(taken, *forger.hold(ICCID, link.id))


def an_esim_released_without_its_link(forger: LinkForger) -> int:
    link = forger.active()
    return forger.write(forger.of_esim(link, Esim.Released, link_id=link.id))


def an_esim_released_twice(forger: LinkForger) -> int:
    link = forger.failed_link()
    forger.write(*forger.release(link))
    return forger.write(forger.of_esim(link, Esim.Released, link_id=link.id))


def a_link_that_frees_another_esim(forger: LinkForger) -> int:
    freed, released = forger.release(forger.failed_link())
    position = forger.write(forged(freed, iccid=ICCID))
    forger.write(released)
    return position


def a_live_link_that_frees_its_esim(forger: LinkForger) -> int:
    link = forger.active()
    return forger.write(forger.fact(link, Link.EsimReleased, iccid=link.iccid))


def an_esim_with_two_streams(forger: LinkForger) -> int:
    _, registered, _ = forger.reservation(forger.requested("0"))
    return forger.write(registered, forged(registered, originator_id=uuid4()))


CRIMES: dict[Crime, str] = {
    an_esim_that_a_live_link_holds: "takes the eSIM that link",
    another_esim_than_the_link_has_taken: "for a link that did not take it",
    an_esim_released_without_its_link: "is released without its link",
    an_esim_released_twice: "is not held by link",
    a_link_that_frees_another_esim: "names another eSIM than it holds",
    a_live_link_that_frees_its_esim: "has EsimReleased while it is active",
    an_esim_with_two_streams: "has another stream already",
}
