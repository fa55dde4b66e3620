"""That a link is paid for before it is active, and has all its money back when it failed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from domain.accounts.price import Price, Repayment
from domain.accounts.wallet import Reference
from domain.links.esim import Esim
from domain.links.link import Link
from projections.invariants.bookings import Bookings, Reason
from projections.invariants.link_plans import LinkPlans
from projections.invariants.promises import Promises

# After which stages an event may come, and the stage after it; any other event leaves a link that
# is active as it is.
ACTIVE = ({"active"}, "active")
STAGES: Mapping[type[Link.Event], tuple[set[str], str]] = {
    Link.EsimReserved: ({"requested"}, "reserved"),
    Link.EndpointRequested: ({"reserved", "begun"}, "begun"),
    Link.EndpointCreated: ({"begun"}, "created"),
    Link.Activated: ({"created"}, "active"),
    Link.ProvisioningFailed: ({"requested", "reserved", "begun"}, "failed"),
    Link.EndpointRemoved: ({"failed"}, "cleaned up"),
    Link.EsimReleased: ({"failed", "cleaned up"}, "ended"),
}


@dataclass(slots=True)
class _Link:
    """What a link has come to; `requested` until its money can no longer move."""

    organization_id: UUID
    requested: Link.Requested | None
    stage: str = "requested"
    iccid: str | None = None
    plans: LinkPlans = field(default_factory=LinkPlans)


@dataclass
class Links:
    """Every unfinished or live link; one that has ended is forgotten."""

    _bookings: Bookings
    _promises: Promises
    _links: dict[UUID, _Link] = field(default_factory=dict)
    _holders: dict[str, UUID] = field(default_factory=dict)  # The link that holds an ICCID.

    def check(self, position: int, event: Link.Event) -> Iterator[str]:
        if isinstance(event, Link.Requested):
            yield from self._request(event)
            return
        link = self._links.get(event.originator_id)
        if link is None:
            yield f"link {event.originator_id} moves before it was requested, or after its end"
            return
        if event.organization_id != link.organization_id:
            yield f"link {event.originator_id} changes its organization"
        before, after = STAGES.get(type(event), ACTIVE)
        if link.stage not in before:
            yield f"link {event.originator_id} has {type(event).__name__} while it is {link.stage}"
        link.stage = after
        yield from self._check_facts(position, event, link)

    def _check_facts(self, position: int, event: Link.Event, link: _Link) -> Iterator[str]:
        match event:
            case Link.EsimReserved():
                yield from self._reserve(position, event, link)
            case Link.Activated():
                yield from self._activate(event, link)
            case Link.ProvisioningFailed():
                yield from self._fail(position, event, link)
            case Link.EsimReleased():
                yield from self._release(position, event, link)
            case _:
                yield from link.plans.check(event, self._promises)

    def _request(self, event: Link.Requested) -> Iterator[str]:
        self._links[event.originator_id] = _Link(event.organization_id, event)
        if _micros(event.price) != event.plan.price_micros:
            yield f"link {event.originator_id} costs another sum than its plan"

    def _reserve(self, position: int, event: Link.EsimReserved, link: _Link) -> Iterator[str]:
        link_id = event.originator_id
        holder = self._holders.setdefault(event.iccid, link_id)
        if holder != link_id:
            yield f"link {link_id} takes the eSIM that link {holder} holds"
        link.iccid = event.iccid
        missing = f"link {link_id} took an eSIM that was not reserved for it"
        self._promises.make(position, (Esim.Reserved, link_id), event.iccid, missing)
        if link.requested is not None and link.requested.price is not None:
            self._bookings.announce_charge(_reason(position, event), link.requested.price)

    def _activate(self, event: Link.Activated, link: _Link) -> Iterator[str]:
        requested, link.requested = link.requested, None
        link.plans.begin(event.activation_id)
        if event.iccid != link.iccid:
            yield f"link {event.originator_id} names another eSIM than it holds"
        if requested is None:  # It is here against its stage, which has been said.
            return
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


def _micros(money: Price | Repayment | None) -> int:
    return money.amount_micros if money is not None else 0
