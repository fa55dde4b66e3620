"""What breaks the invariants of links."""

from functools import partial
from typing import Any
from uuid import uuid4

from domain.accounts.paid_price import PaidPrice, Repayment
from domain.links.bought_plan import TakenOver
from domain.links.link import Link
from domain.log.aggregate import Event
from tests.domain.build_links import bought
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger

OTHER = "8988247000000000017"
MICROS = 100_000


def out_of_order(state: str, kind: type[Event], facts: dict[str, Any], forger: LinkForger) -> int:
    """Have a link in this state do what only one in another does."""
    return forger.does(getattr(forger, state)(), kind, **facts)


def activates(forger: LinkForger, **changes: Any) -> int:
    created, activated = forger.activation(forger.begun())
    forger.write(created)
    return forger.write(forged(activated, **changes))


def an_activation_without_payment(forger: LinkForger) -> int:
    link = forger.requested()
    *taken, charge = forger.reservation(link)
    link.request_endpoint(forger.cause.at, forger.cause)
    forger.write(*taken, *link.collect_events())
    position = forger.write(*forger.activation(link))
    forger.write(charge)  # It comes all the same, and too late.
    return position


def a_refund_of_the_charge_of_another_link(forger: LinkForger) -> int:
    link, other = forger.begun(), forger.begun()
    failed = forger.failure(link)
    back = forger.money_back(link, failed)
    return forger.write(failed, forged(back, charge_id=other.requested.price.transaction_id))


def a_refund_that_nobody_announced(forger: LinkForger) -> int:
    link, refund = forger.active(), Repayment(MICROS, uuid4())
    return forger.write(forger.refund("activation", link.id, refund, link.requested.price))


def an_imported_link(forger: LinkForger, iccid: str | None) -> int:
    link = Link.take_over(
        uuid4(),
        forger.cause,
        organization_id=forger.organization_id,
        name=None,
        iccid=iccid or "",
        endpoint_id="e",
        sponsor_profile=None,
        plans=[TakenOver(uuid4(), bought(price="0"), forger.cause.at)],
        lpa=None,
    )
    imported, *more = link.collect_events()
    position = forger.write(imported)
    forger.write(*more)
    return position


def a_link_that_moves_after_it_has_failed_empty_handed(forger: LinkForger) -> int:
    link = forger.requested()
    forger.write(forger.failure(link))
    return forger.write(forger.gives_up(link))


def a_link_that_moves_after_its_end(forger: LinkForger) -> int:
    link = forger.failed_link()
    forger.write(*forger.release(link))
    return forger.write(forger.activated(link))


def a_link_that_changes_its_organization(forger: LinkForger) -> int:
    seen = forger.fact(forger.active(), Link.StatusSeen, status="inactive")
    return forger.write(forged(seen, organization_id=uuid4()))


OUT_OF_ORDER: list[tuple[str, type[Event], dict[str, Any]]] = [
    ("reserved", Link.EsimReserved, {"iccid": OTHER, "sponsor_profile": None}),
    ("reserved", Link.EndpointCreated, {"endpoint_id": "e", "addon_id": None, "adopted": False}),
    ("begun", Link.Suspended, {}),
    ("begun", Link.ChangeOpened, {"change_id": uuid4()}),
    ("active", Link.EndpointFound, {"endpoint_id": "e"}),
    ("active", Link.EndpointRemoved, {"endpoint_id": "e"}),
    ("active", Link.EsimReleased, {"iccid": OTHER}),
]
CRIMES: Crimes = [
    (partial(out_of_order, state, kind, facts), f"has {kind.__name__} while it is {state}")
    for state, kind, facts in OUT_OF_ORDER
]
CRIMES += [
    (
        lambda f: f.does(f.requested(), Link.EndpointRequested, attempt=1, until=f.cause.at),
        "has EndpointRequested while it is requested",
    ),
    (lambda f: f.write(f.activated(f.begun())), "has Activated while it is begun"),
    (lambda f: f.write(f.activated(f.failed_link())), "has Activated while it is failed"),
    (lambda f: f.write(f.gives_up(f.failed_link())), "has ProvisioningFailed while it is failed"),
    (lambda f: f.write(f.gives_up(f.active())), "has ProvisioningFailed while it is active"),
    (
        lambda f: f.write(forged(f.requests(), price=PaidPrice(1, "USD", uuid4()))),
        "costs another sum than its plan",
    ),
    (an_activation_without_payment, "is active and was not paid for"),
    (lambda f: activates(f, plan=bought("0.10", "Another")), "has another plan than was asked for"),
    (lambda f: activates(f, iccid=OTHER), "names another eSIM than it holds"),
    (lambda f: activates(f, bought_at=f.cause.at), "begins with plans that nobody has bought"),
    (lambda f: f.write(f.failure(f.begun(), refund=None)), "another sum back than it was charged"),
    (
        lambda f: f.write(f.failure(f.requested(), refund=Repayment(MICROS, uuid4()))),
        "another sum back than it was charged",
    ),
    (a_refund_that_nobody_announced, "has no failure that names it"),
    (a_refund_of_the_charge_of_another_link, "names no charge of its reason"),
    (
        lambda f: f.write(f.gives_up(f.reserved("0"), iccid=None)),
        "names another eSIM than it holds",
    ),
    (lambda f: an_imported_link(f, f.active().iccid), "takes the eSIM that link"),
    (a_link_that_moves_after_it_has_failed_empty_handed, "or after its end"),
    (a_link_that_moves_after_its_end, "or after its end"),
    (a_link_that_changes_its_organization, "changes its organization"),
]
