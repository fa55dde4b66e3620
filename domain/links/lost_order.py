"""An order whose reply was lost: we look for its eSIM at the network once, and give it back.

Equal orders are interchangeable. So a link may take the order of another link, or be refunded while
its own order is still under way. But each order was placed during its call. So after a lost reply
we search the time of that call, as soon as the network shows all orders of that time.

This is for networks that sell by order. On a stock network a late endpoint carries our reference,
and `CreateEndpoint` removes it.
"""

from datetime import datetime, timedelta
from typing import ClassVar, Self
from uuid import UUID

from domain.cause import Cause, lies_ahead
from domain.cost import Cost
from domain.errors import Conflict
from domain.links.bought_plan import BoughtPlan
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.network import Order
from domain.log.aggregate import NOTHING, SOMETHING, Created, Root, itself, sets
from domain.log.log import Log

# How much earlier than us a network may date an order: it cuts to seconds, and our clock may be two
# seconds ahead (`CLOCK_OFF_MAX`).
APART = timedelta(seconds=3)
# The same if orders carry our reference: then the network's clock need not be right.
WIDE = timedelta(hours=1)


class LostOrder(Root):
    """The time of a call whose reply was lost, and the unclaimed orders of that time.

    `found` is an order that this stream has claimed and not given back yet.
    """

    TOPIC = "lost_order"

    class Event(Root.Event):
        organization_id: UUID
        link_id: UUID

    class Opened(Event, Created):
        """Saved when its link fails, or gets another order than that of the lost call.

        If the call placed an order, its date is from `since` to `until`. By `settled_at` the
        network shows it, and every link that could take it has its outcome.
        """

        TOPIC = "lost_order.opened"
        SETS = sets("organization_id", "link_id", "network", opened=itself)

        network: str
        plan: BoughtPlan
        since: datetime
        until: datetime
        settled_at: datetime

    class Found(Event):
        """An order that no link had taken; this commit claims its eSIM, so no link will."""

        TOPIC = "lost_order.found"
        SETS = sets(found=itself)

        order_reference: str
        iccid: str
        placed_at: datetime
        cost: Cost | None

    class TakenBack(Event):
        TOPIC = "lost_order.taken_back"

        order_reference: str
        iccid: str

        def apply(self, aggregate: "LostOrder") -> None:
            aggregate.found = None
            aggregate.ended |= {self.order_reference}

    class LeftOver(Event):
        """An incident: we paid for an eSIM that nobody uses, and the network keeps the money."""

        TOPIC = "lost_order.left_over"

        order_reference: str
        iccid: str
        plan: BoughtPlan
        cost: Cost | None

        def apply(self, aggregate: "LostOrder") -> None:
            aggregate.found = None
            aggregate.ended |= {self.order_reference}

    class Settled(Event):
        """Nothing more can come of the call."""

        TOPIC = "lost_order.settled"
        SETS = sets(is_settled=True)

    OWN = ("organization_id", "link_id")
    STAGES: ClassVar = {
        "found": {
            **dict.fromkeys((Found, Settled), NOTHING),
            **dict.fromkeys((TakenBack, LeftOver), SOMETHING),
        },
        "is_settled": {Found: (False,)},
    }

    organization_id: UUID
    link_id: UUID
    network: str
    opened: Opened
    found: Found | None = None
    ended: frozenset[str] = frozenset()  # The references of the orders that were dealt with.
    is_settled: bool = False

    @classmethod
    def open(cls, link: Link, settles_after: timedelta, cause: Cause) -> Self:
        """Begin the stream of a link's lost order; a link has at most one.

        `settled_at` assumes that no other link has a longer deadline than this one.
        """
        assert isinstance(link.intent, Link.OrderRequested)
        assert link.ordered_since is not None
        until = link.intent.until + settles_after
        return cls.begin(
            cls.Opened,
            cause,
            LostOrder.id_of(link.id),
            organization_id=link.organization_id,
            link_id=link.id,
            network=link.intent.network,
            plan=link.requested.plan,
            since=link.ordered_since,
            until=until,
            settled_at=until + (link.requested.deadline - link.requested.timestamp),
        )

    @property
    def order(self) -> Order:
        assert self.found is not None
        found, item = self.found, self.opened.plan.provider_plan_id
        return Order(found.order_reference, found.iccid, item, found.placed_at, cost=found.cost)

    def record_found(self, order: Order, cause: Cause) -> None:
        """Claim an order; saved with its eSIM."""
        paid = order.cost or self.opened.plan.cost_of(order.order_reference)
        self.record(self.Found, cause, **order.facts, cost=paid)

    def record_ended(self, cause: Cause, *, taken_back: bool) -> None:
        """Note whether the network took the found order back; saved with its eSIM."""
        assert self.found is not None
        facts = {"order_reference": self.found.order_reference, "iccid": self.found.iccid}
        if taken_back:
            self.record(self.TakenBack, cause, **facts)
        else:
            plan, cost = self.opened.plan, self.found.cost
            self.record(self.LeftOver, cause, **facts, plan=plan, cost=cost)


def search_span(
    since: datetime, until: datetime, *, by_reference: bool
) -> tuple[datetime, datetime]:
    """Return the span of the network's clock in which to look for the orders of our calls."""
    apart = WIDE if by_reference else APART
    return since - apart, until + apart


def may_adopt(link: Link, order: Order, now: datetime, *, by_reference: bool) -> bool:
    """Tell whether a link whose reply was lost may take an unclaimed order.

    If the network keeps our reference, it must be the link's own order. Otherwise equal orders are
    interchangeable: any order that is not older than the intent will do, but only once the call is
    over, because until then the reply may still come.
    """
    if by_reference:
        return order.reference == str(link.id)
    assert link.intent is not None
    assert link.ordered_since is not None
    is_over = not lies_ahead(link.intent.until, now)
    return is_over and order.placed_at >= link.ordered_since - APART


def is_claimed(log: Log, network: str, order: Order) -> bool:
    """Tell whether a link has taken the eSIM of an order, or a lost order has claimed it.

    A network may sell an eSIM again after taking it back; such an order is younger.
    """
    esim = log.find(Esim, Esim.id_of(network, order.iccid))
    if esim is None:
        return False
    return esim.freed_at is None or esim.link_id is not None or order.placed_at <= esim.freed_at


def claim(log: Log, network: str, order: Order, link_id: UUID, cause: Cause) -> Esim:
    """Give the eSIM of an order to a link; raises Conflict when another link has it."""
    known = log.find(Esim, Esim.id_of(network, order.iccid))
    if known is not None and known.link_id is not None:
        raise Conflict(known.id)
    esim = known or Esim.register(network, order.iccid, cause)
    esim.reserve(link_id, cause)
    return esim


def is_of(lost: LostOrder, order: Order, *, by_reference: bool) -> bool:
    """Tell whether the lost call may have placed an order that was not dealt with yet.

    `by_reference`: the network keeps our reference; otherwise only the time decides.
    """
    if order.order_reference in lost.ended:
        return False
    if by_reference:
        return order.reference == str(lost.link_id)
    return lost.opened.since - APART <= order.placed_at <= lost.opened.until
