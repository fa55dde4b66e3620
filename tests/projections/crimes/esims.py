"""What breaks the rule that one link at a time holds an eSIM."""

from uuid import uuid4

from domain.links.esim import Esim
from domain.links.link import Link
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger

ICCID = "8988247000000000017"


def an_esim_that_a_live_link_holds(forger: LinkForger) -> int:
    iccid = forger.active().iccid
    return forger.does(forger.requested("0"), Link.EsimReserved, iccid=iccid, sponsor_profile=None)


def another_esim_than_the_link_has_taken(forger: LinkForger) -> int:
    link = forger.requested("0")
    taken, *_ = forger.reservation(link)
    return forger.write(taken, *forger.hold(ICCID, link.id))


def released(forger: LinkForger, link: Link) -> int:
    return forger.write(forger.of_esim(link, Esim.Released, link_id=link.id))


def an_esim_released_twice(forger: LinkForger) -> int:
    link = forger.failed_link()
    forger.write(*forger.release(link))
    return released(forger, link)


def a_link_that_frees_another_esim(forger: LinkForger) -> int:
    freed, its = forger.release(forger.failed_link())
    position = forger.write(forged(freed, iccid=ICCID))
    forger.write(its)
    return position


def an_esim_with_two_streams(forger: LinkForger) -> int:
    _, registered, _ = forger.reservation(forger.requested("0"))
    return forger.write(registered, forged(registered, originator_id=uuid4()))


CRIMES: Crimes = [
    (an_esim_that_a_live_link_holds, "takes the eSIM that link"),
    (another_esim_than_the_link_has_taken, "for a link that did not take it"),
    (lambda f: released(f, f.active()), "is released without its link"),
    (an_esim_released_twice, "is not held by link"),
    (a_link_that_frees_another_esim, "names another eSIM than it holds"),
    (an_esim_with_two_streams, "has another stream already"),
]
