"""Checks that a link is paid for before it is active, and refunded in full if it fails.

Also that a link has exactly the plans that its plan changes gave it, one change at a time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from domain.accounts.paid_price import PaidPrice, Repayment
from domain.accounts.wallet import Reference
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.lost_order import APART, LostOrder
from projections.audit.bookings import Bookings, Reason
from projections.audit.link_ends import EndInvariants
from projections.audit.promises import Promises


@dataclass(slots=True)
class LinkPlanInvariants:
    """The activations of one link, including removed ones, and its open plan change."""

    _is_on: dict[UUID, bool] = field(default_factory=dict)
    _open_change: UUID | None = None
    _told: dict[UUID, int] = field(default_factory=dict)  # The highest told percentage of usage.
    _once: set[tuple[type, UUID]] = field(default_factory=set)  # What else was told of which plan.

    @property
    def is_changing(self) -> bool:
        return self._open_change is not None

    def begin(self, activation_id: UUID) -> None:
        """Start with the plan with which the link was created."""
        self._is_on[activation_id] = True

    def check(self, event: Link.Event, promises: Promises) -> Iterator[str]:
        match event:
            case Link.ChangeOpened():
                yield from self._open(event, promises)
            case Link.PlanAdded():
                yield from self._add(event)
                added = (event.originator_id, event.plan, event.addon_id)
                yield from self._check_change(event, added, promises)
            case Link.PlanRemoved():
                yield from self._remove(event)
                yield from self._check_change(event, event.originator_id, promises)
            case Link.ChangeClosed():
                yield from self._close(event, promises)
            case Link.UsageReached() | Link.ExpiryNear() | Link.PlanStarted() | Link.PlanEnded():
                yield from self._tell(event)

    def _tell(
        self, event: Link.UsageReached | Link.ExpiryNear | Link.PlanStarted | Link.PlanEnded
    ) -> Iterator[str]:
        told = event.activation_id
        if not self._is_on.get(told):
            yield f"link {event.originator_id} tells of activation {told}, which it does not have"
        if isinstance(event, Link.UsageReached):
            again = event.percent <= self._told.get(told, 0)
            self._told[told] = event.percent
        else:
            again = (type(event), told) in self._once
            self._once.add((type(event), told))
        if again:
            yield f"link {event.originator_id} tells {type(event).__name__} of {told} again"

    def _open(self, event: Link.ChangeOpened, promises: Promises) -> Iterator[str]:
        if self._open_change is not None:
            yield f"link {event.originator_id} opens a plan change beside another"
        self._open_change = event.change_id
        opened = (event.originator_id, event.organization_id)
        if not promises.keep((Link.ChangeOpened, event.change_id), opened):
            yield f"link {event.originator_id} opens a plan change that nobody requested for it"

    def _add(self, event: Link.PlanAdded) -> Iterator[str]:
        if event.activation_id in self._is_on:
            yield f"link {event.originator_id} adds activation {event.activation_id} twice"
        self._is_on[event.activation_id] = True

    def _remove(self, event: Link.PlanRemoved) -> Iterator[str]:
        if not self._is_on.get(event.activation_id):
            yield (
                f"link {event.originator_id} removes activation {event.activation_id}, "
                "which it does not have"
            )
        self._is_on[event.activation_id] = False

    def _close(self, event: Link.ChangeClosed, promises: Promises) -> Iterator[str]:
        if event.change_id != self._open_change:
            yield f"link {event.originator_id} closes a plan change that is not open"
        self._open_change = None
        if not promises.keep((Link.ChangeClosed, event.change_id), event.originator_id):
            yield f"link {event.originator_id} closes a plan change that has not finished"

    def _check_change(
        self, event: Link.PlanAdded | Link.PlanRemoved, fact: object, promises: Promises
    ) -> Iterator[str]:
        kept = promises.keep((type(event), event.change_id, event.activation_id), fact)
        if not kept or event.change_id != self._open_change:
            yield f"link {event.originator_id} has {type(event).__name__} which no change has done"


# For each event the stages after which it may come, and the stage that follows. Any other event
# leaves an active link active.
ACTIVE = ({"active"}, "active")
OPENING = (Link.ChangeOpened, Link.StatusRequested)  # Not allowed while an end is open.
STAGES: Mapping[type[Link.Event], tuple[set[str], str]] = {
    Link.EsimReserved: ({"requested"}, "reserved"),
    Link.EndpointRequested: ({"reserved", "begun"}, "begun"),
    Link.OrderRequested: ({"requested", "ordering"}, "ordering"),
    Link.OrderPlaced: ({"ordering"}, "ordered"),
    Link.EndpointCreated: ({"begun", "ordered"}, "created"),
    Link.Activated: ({"created"}, "active"),
    Link.ProvisioningFailed: ({"requested", "reserved", "begun", "ordering"}, "failed"),
    Link.EndpointFound: ({"failed"}, "failed"),
    Link.EndpointLeftOver: ({"failed"}, "failed"),
    Link.EndpointRemoved: ({"failed"}, "cleaned up"),
    Link.EsimReleased: ({"failed", "cleaned up"}, "ended"),
    Link.Ended: ({"active"}, "over"),
}


@dataclass(slots=True)
class _Link:
    """The state of a link; `requested` is kept until its money can no longer move."""

    organization_id: UUID
    requested: Link.Began | None
    stage: str = "requested"
    iccid: str | None = None
    order: Link.OrderRequested | None = None  # The newest intent to order.
    ordered_since: datetime | None = None
    plans: LinkPlanInvariants = field(default_factory=LinkPlanInvariants)
    end: Link.EndRequested | None = None  # The intent that is open.


@dataclass
class LinkInvariants:
    """Every link; a link that failed is forgotten once it holds no eSIM."""

    _bookings: Bookings
    _promises: Promises
    _ends: EndInvariants
    _links: dict[UUID, _Link] = field(default_factory=dict)
    _holders: dict[str, UUID] = field(default_factory=dict)  # ICCID to the link that holds it.

    def check(self, position: int, event: Link.Event) -> Iterator[str]:
        if isinstance(event, Link.Began):
            yield from self._request(position, event)
            return
        link = self._links.get(event.originator_id)
        if link is None:
            yield f"link {event.originator_id} moves before it was requested, or after its end"
            return
        if event.organization_id != link.organization_id:
            yield f"link {event.originator_id} changes its organization"
        before, after = STAGES.get(type(event), ACTIVE)
        if isinstance(event, Link.Renamed) and link.stage == "over":
            return
        if link.stage not in before:
            yield f"link {event.originator_id} has {type(event).__name__} while it is {link.stage}"
        link.stage = after
        yield from self._check_facts(position, event, link)

    def _check_facts(self, position: int, event: Link.Event, link: _Link) -> Iterator[str]:
        match event:
            case Link.EsimReserved():
                yield from self._reserve(position, event, link)
            case Link.OrderRequested():
                yield from self._order(position, event, link)
            case Link.OrderPlaced():
                yield from self._place(position, event, link)
            case Link.Activated():
                yield from self._activate(event, link)
            case Link.ProvisioningFailed():
                yield from self._fail(position, event, link)
            case Link.EsimReleased():
                yield from self._release(position, event, link)
            case Link.EndRequested() | Link.EndKept() | Link.Ended():
                yield from self._end(position, event, link)
            case _:
                if link.end is not None and isinstance(event, OPENING):
                    yield f"link {event.originator_id} begins something while it is being ended"
                yield from link.plans.check(event, self._promises)

    def _end(self, position: int, event: Link.Event, link: _Link) -> Iterator[str]:
        link_id = event.originator_id
        if not isinstance(event, Link.EndKept) and link.plans.is_changing:
            yield f"link {link_id} is ended beside a plan change"
        match event:
            case Link.EndRequested():
                if link.end is not None:
                    yield f"link {link_id} is ended while it is being ended"
                link.end = event
                return
            case Link.EndKept() if link.end is None:
                yield f"link {link_id} is kept that nobody would end"
            case Link.Ended():
                yield from self._ends.check(position, event, link.end)
                if event.reason == "cancelled" and link.order is not None:
                    self._holders.pop(link.iccid or "", None)
        link.end = None

    def _request(self, position: int, event: Link.Began) -> Iterator[str]:
        link = self._links[event.originator_id] = _Link(event.organization_id, event)
        if _micros(event.price) != event.plan.price_micros:
            yield f"link {event.originator_id} costs another sum than its plan"
        if isinstance(event, Link.Imported):
            link.stage = "ordered"
            yield from self._hold(position, event, link)

    def _reserve(self, position: int, event: Link.EsimReserved, link: _Link) -> Iterator[str]:
        yield from self._hold(position, event, link)
        self._announce_charge(position, event, link)

    def _hold(
        self,
        position: int,
        event: Link.EsimReserved | Link.OrderPlaced | Link.Imported,
        link: _Link,
    ) -> Iterator[str]:
        link_id = event.originator_id
        holder = self._holders.setdefault(event.iccid, link_id)
        if holder != link_id:
            yield f"link {link_id} takes the eSIM that link {holder} holds"
        link.iccid = event.iccid
        missing = f"link {link_id} took an eSIM that was not reserved for it"
        self._promises.make(position, (Esim.Reserved, link_id), event.iccid, missing)

    def _announce_charge(self, position: int, event: Link.Event, link: _Link) -> None:
        if link.requested is not None and link.requested.price is not None:
            self._bookings.announce_charge(_reason(position, event), link.requested.price)

    def _order(self, position: int, event: Link.OrderRequested, link: _Link) -> Iterator[str]:
        before, link.order = link.order, event
        if link.requested and event.item != link.requested.plan.provider_plan_id:
            yield f"link {event.originator_id} orders another plan than was asked for"
        if before is None:
            link.ordered_since = event.timestamp
            self._announce_charge(position, event, link)
        elif event.timestamp < before.until:
            yield f"link {event.originator_id} orders again before the time-out of its order"

    def _place(self, position: int, event: Link.OrderPlaced, link: _Link) -> Iterator[str]:
        yield from self._hold(position, event, link)
        began = link.ordered_since
        if event.adopted and (began is None or event.placed_at < began - APART):
            yield f"link {event.originator_id} takes an order that is older than its own"
        if event.adopted or (link.order is not None and link.order.attempt > 1):
            self._announce_lost(position, event)

    def _announce_lost(self, position: int, event: Link.Event) -> None:
        """Expect the stream that looks for the order whose reply was lost."""
        missing = f"link {event.originator_id} has lost an order that nobody looks for"
        key = (LostOrder.Opened, event.originator_id)
        self._promises.make(position, key, event.organization_id, missing)

    def _activate(self, event: Link.Activated, link: _Link) -> Iterator[str]:
        requested, link.requested = link.requested, None
        for each in event.taken_over:
            link.plans.begin(each.activation_id)
        if event.iccid != link.iccid:
            yield f"link {event.originator_id} names another eSIM than it holds"
        if requested is None:  # It came from a wrong stage, which was reported already.
            return
        if (event.bought_at or event.more) and not isinstance(requested, Link.Imported):
            yield f"link {event.originator_id} begins with plans that nobody has bought"
        if event.plan != requested.plan:
            yield f"link {event.originator_id} has another plan than was asked for"
        price = requested.price
        if self._bookings.charged_micros(price) != _micros(price):
            yield f"link {event.originator_id} is active and was not paid for"
        self._bookings.forget(price)

    def _fail(self, position: int, event: Link.ProvisioningFailed, link: _Link) -> Iterator[str]:
        requested, link.requested = link.requested, None
        price = requested.price if requested is not None else None
        if _micros(event.refund) != self._bookings.charged_micros(price):
            yield f"link {event.originator_id} failed with another sum back than it was charged"
        if event.refund is not None:
            self._bookings.announce_refund(_reason(position, event), event.refund, price)
        if event.iccid != link.iccid:
            yield f"link {event.originator_id} names another eSIM than it holds"
        if link.order is not None and event.settled_at is not None:
            self._announce_lost(position, event)
        if link.iccid is None:
            del self._links[event.originator_id]

    def _release(self, position: int, event: Link.EsimReleased, link: _Link) -> Iterator[str]:
        link_id = event.originator_id
        if event.iccid != link.iccid:
            yield f"link {link_id} names another eSIM than it holds"
        missing = f"link {link_id} freed an eSIM that is still reserved for it"
        self._promises.make(position, (Esim.Released, link_id), link.iccid, missing)
        if link.iccid is not None and self._holders.get(link.iccid) == link_id:
            del self._holders[link.iccid]
        del self._links[link_id]


def _reason(position: int, event: Link.Event) -> Reason:
    reference = Reference("link", str(event.originator_id))
    return Reason(position, event.organization_id, reference, "activation")


def _micros(money: PaidPrice | Repayment | None) -> int:
    return money.amount_micros if money is not None else 0
