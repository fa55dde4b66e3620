"""What breaks the invariants of orders, and of what a lost one leaves."""

from datetime import timedelta
from typing import Any

from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.network import Endpoint, Order
from domain.log.aggregate import Event
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger

ICCID, OTHER = "8988247000000000017", "8988247000000000025"
CALL, SETTLES_AFTER = timedelta(seconds=5), timedelta(seconds=45)


def ordering(forger: LinkForger, price: str = "0.10") -> Link:
    """A link that was paid for with its intent to order."""
    link = forger.requested(price)
    link.request_order("simulated", forger.cause.at + CALL, forger.cause, link.id)
    paid = link.requested.price
    charges = [forger.charge("activation", link.id, paid)] if paid is not None else []
    forger.write(*link.collect_events(), *charges)
    return link


def placed(forger: LinkForger, link: Link, *, adopted: bool = False, **changes: Any) -> list[Event]:
    """The commit of an order: the link, its eSIM, and what the adopter has lost."""
    order = Order("order-1", ICCID, link.requested.plan.provider_plan_id, forger.cause.at)
    link.record(Link.OrderPlaced, forger.cause, **order.facts, adopted=adopted)
    link.activate(Endpoint(ICCID, ICCID, str(link.id)), None, forger.cause, adopted=adopted)
    ordered, *others = link.collect_events()
    lost = lost_by(forger, link).collect_events() if adopted else []
    return [forged(ordered, **changes), *others, *forger.hold(ICCID, link.id), *lost]


def lost_by(forger: LinkForger, link: Link) -> LostOrder:
    return LostOrder.open(link, SETTLES_AFTER, forger.cause)


def failed(forger: LinkForger) -> Link:
    """A link that has failed with its order under way; what it has lost is still to be written."""
    link = ordering(forger, "0")
    link.fail("PROVISIONING_ERROR", {}, forger.cause.at + SETTLES_AFTER, forger.cause)
    return link


def lost(forger: LinkForger) -> LostOrder:
    link = failed(forger)
    made = lost_by(forger, link)
    forger.write(*link.collect_events(), *made.collect_events())
    return made


def an_order_again_before_the_time_out(forger: LinkForger) -> int:
    link = ordering(forger, "0")
    link.request_order("simulated", forger.cause.at + CALL, forger.cause, link.id)
    return forger.write(*link.collect_events())


def an_order_that_is_older_than_the_intent(forger: LinkForger) -> int:
    link = ordering(forger)
    early = forger.cause.at - timedelta(seconds=4)
    ordered, *others = placed(forger, link, adopted=True, placed_at=early)
    position = forger.write(ordered)
    forger.write(*others)
    return position


def an_esim_of_an_order_that_it_does_not_reserve(forger: LinkForger) -> int:
    ordered, *others = placed(forger, ordering(forger))
    position = forger.write(ordered)
    forger.write(*[each for each in others if isinstance(each, Link.Event)])
    return position


def a_lost_order_of_a_link_that_has_lost_none(forger: LinkForger) -> int:
    return forger.write(*lost_by(forger, ordering(forger)).collect_events())


def right_orders(forger: LinkForger) -> None:
    """An order, one that was adopted, and a failure whose order was found and given back."""
    forger.write(*placed(forger, ordering(forger), adopted=True))
    made = found_elsewhere(forger)
    made.record_ended(forger.cause, taken_back=True)
    forger.write(*made.collect_events(), *freed(forger, OTHER, made))
    made.record(LostOrder.Settled, forger.cause)
    forger.write(*made.collect_events())


def found_elsewhere(forger: LinkForger) -> LostOrder:
    made = lost(forger)
    made.record_found(Order("order-2", OTHER, "item", forger.cause.at), forger.cause)
    forger.write(*made.collect_events(), *forger.hold(OTHER, made.opened.link_id))
    return made


def freed(forger: LinkForger, iccid: str, made: LostOrder) -> list[Event]:
    esim = forger._esims[iccid]  # noqa: SLF001  # It keeps what it has written.
    esim.release(made.opened.link_id, forger.cause)
    return [*esim.collect_events()]


CRIMES: Crimes = [
    (an_order_again_before_the_time_out, "before the time-out"),
    (an_order_that_is_older_than_the_intent, "older than its own"),
    (an_esim_of_an_order_that_it_does_not_reserve, "announces esim.reserved, which never comes"),
    (a_lost_order_of_a_link_that_has_lost_none, "no event before it says so"),
]
