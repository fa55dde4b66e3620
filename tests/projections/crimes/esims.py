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


def an_esim_that_an_unfinished_link_holds(forger: LinkForger) -> int:
    taken_by(forger, forger.reserved())
    return forger.process.log.head()


def an_esim_that_a_live_link_holds(forger: LinkForger) -> int:
    taken_by(forger, forger.active())
    return forger.process.log.head()


def an_esim_that_a_failed_link_has_not_freed(forger: LinkForger) -> int:
    taken_by(forger, forger.failed_link())
    return forger.process.log.head()


def an_esim_that_its_own_stream_has_not_freed(forger: LinkForger) -> int:
    holder = forger.failed_link()
    freed, _ = forger.release(holder)
    forger.write(freed)
    taker = taken_by(forger, holder)
    esim = forger.esim_of(holder)
    reserved = forged(
        forger.of_esim(holder, Esim.Reserved, link_id=taker.id),
        originator_version=esim.version - 1,  # The release before it was not written.
    )
    return forger.write(reserved)


def an_esim_reserved_for_a_link_that_has_not_taken_it(forger: LinkForger) -> int:
    return forger.write(*forger.hold(ICCID, forger.requested().id))


def an_esim_reserved_for_another_link(forger: LinkForger) -> int:
    taken, registered, reserved = forger.reservation(forger.requested("0"))
    return forger.write(taken, registered, forged(reserved, link_id=uuid4()))


def another_esim_than_the_link_has_taken(forger: LinkForger) -> int:
    link = forger.requested("0")
    taken, *_ = forger.reservation(link)
    return forger.write(taken, *forger.hold(ICCID, link.id))


def a_link_of_which_its_esim_knows_nothing(forger: LinkForger) -> int:
    taken, *_ = forger.reservation(forger.requested("0"))
    return forger.write(taken)


def an_esim_released_for_another_link(forger: LinkForger) -> int:
    return forger.write(forger.of_esim(forger.failed_link(), Esim.Released, link_id=uuid4()))


def an_esim_released_without_its_link(forger: LinkForger) -> int:
    link = forger.active()
    return forger.write(forger.of_esim(link, Esim.Released, link_id=link.id))


def an_esim_released_twice(forger: LinkForger) -> int:
    link = forger.failed_link()
    forger.write(*forger.release(link))
    return forger.write(forger.of_esim(link, Esim.Released, link_id=link.id))


def a_link_that_frees_an_esim_which_stays_reserved(forger: LinkForger) -> int:
    freed, _ = forger.release(forger.failed_link())
    return forger.write(freed)


def a_link_that_frees_another_esim(forger: LinkForger) -> int:
    freed, released = forger.release(forger.failed_link())
    position = forger.write(forged(freed, iccid=ICCID))
    forger.write(released)
    return position


def a_live_link_that_frees_its_esim(forger: LinkForger) -> int:
    link = forger.active()
    return forger.write(forger.fact(link, Link.EsimReleased, iccid=link.iccid))


def a_quarantine_for_another_link(forger: LinkForger) -> int:
    facts = {"link_id": uuid4(), "until": forger.cause.at}
    return forger.write(forger.of_esim(forger.failed_link(), Esim.Quarantined, **facts))


def an_esim_that_moves_before_it_was_registered(forger: LinkForger) -> int:
    taken, _, reserved = forger.reservation(forger.requested("0"))
    return forger.write(taken, forged(reserved, originator_version=1))


def an_esim_with_two_streams(forger: LinkForger) -> int:
    _, registered, _ = forger.reservation(forger.requested("0"))
    return forger.write(registered, forged(registered, originator_id=uuid4()))


CRIMES: dict[Crime, str] = {
    an_esim_that_an_unfinished_link_holds: "takes the eSIM that link",
    an_esim_that_a_live_link_holds: "takes the eSIM that link",
    an_esim_that_a_failed_link_has_not_freed: "takes the eSIM that link",
    an_esim_that_its_own_stream_has_not_freed: "is reserved while link",
    an_esim_reserved_for_a_link_that_has_not_taken_it: "for a link that did not take it",
    an_esim_reserved_for_another_link: "for a link that did not take it",
    another_esim_than_the_link_has_taken: "for a link that did not take it",
    a_link_of_which_its_esim_knows_nothing: "took an eSIM that was not reserved for it",
    an_esim_released_for_another_link: "is not held by link",
    an_esim_released_without_its_link: "is released without its link",
    an_esim_released_twice: "is not held by link",
    a_link_that_frees_an_esim_which_stays_reserved: "freed an eSIM that is still reserved for it",
    a_link_that_frees_another_esim: "names another eSIM than it holds",
    a_live_link_that_frees_its_esim: "has EsimReleased while it is active",
    a_quarantine_for_another_link: "is not held by link",
    an_esim_that_moves_before_it_was_registered: "moves before it was registered",
    an_esim_with_two_streams: "has another stream already",
}
