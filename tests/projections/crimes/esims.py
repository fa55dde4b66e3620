"""What breaks the rule that one link at a time holds an eSIM."""

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


def a_link_that_frees_another_esim(forger: LinkForger) -> int:
    freed, its = forger.release(forger.failed_link())
    position = forger.write(forged(freed, iccid=ICCID))
    forger.write(its)
    return position


CRIMES: Crimes = [
    (an_esim_that_a_live_link_holds, "announces esim.reserved, which never comes"),
    (another_esim_than_the_link_has_taken, "no event before it says so"),
    (lambda f: released(f, f.active()), "no event before it says so"),
    (a_link_that_frees_another_esim, "names another iccid than its link has"),
]
