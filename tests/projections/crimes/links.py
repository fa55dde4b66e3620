"""What breaks the invariants of links."""

from uuid import UUID, uuid4

from domain.accounts.paid_price import Repayment
from domain.ids import derive_id
from domain.links.bought_plan import TakenOver
from domain.links.link import Link
from tests.domain.build_links import bought
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger

OTHER = "8988247000000000017"
MICROS = 100_000


def with_two_plans(forger: LinkForger) -> int:
    link = forger.begun()
    forged_id = derive_id("activation", link.id, 1)
    created, activated = forger.activation(link)
    more = [TakenOver(forged_id, bought(price="0"), forger.cause.at)]
    return forger.write(created, forged(activated, more=more))


def an_activation_without_payment(forger: LinkForger) -> int:
    link = forger.requested()
    *taken, charge = forger.reservation(link)
    link.request_endpoint(forger.cause.at, forger.cause)
    forger.write(*taken, *link.collect_events())
    position = forger.write(*forger.activation(link))
    forger.write(charge)  # It comes all the same, and too late.
    return position


def a_refund_that_nobody_announced(forger: LinkForger) -> int:
    link, refund = forger.active(), Repayment(MICROS, uuid4())
    return forger.write(forger.refund("activation", link.id, refund, link.requested.price))


def an_import_of_an_esim_that_a_link_holds(forger: LinkForger) -> int:
    iccid = forger.active().iccid
    return an_imported_link(forger, iccid, derive_id("imported_link", "simulated", iccid))


def an_imported_link(forger: LinkForger, iccid: str | None, link_id: UUID | None = None) -> int:
    link = Link.take_over(
        link_id or uuid4(),
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


CRIMES: Crimes = [
    (
        lambda f: f.does(f.reserved(), Link.EsimReserved, iccid=OTHER, sponsor_profile=None),
        "has an eSIM, or is no longer being made",
    ),
    (
        lambda f: f.write(f.activated(f.failed_link())),
        "was not requested, or is no longer being made",
    ),
    (lambda f: f.does(f.begun(), Link.Suspended), "comes while its link is begun"),
    (an_activation_without_payment, "or was not paid for"),
    (with_two_plans, "begins with plans that nobody has bought"),
    (
        lambda f: f.write(f.failure(f.requested(), refund=Repayment(MICROS, uuid4()))),
        "another sum back than was charged",
    ),
    (a_refund_that_nobody_announced, "no event before it says so"),
    (an_import_of_an_esim_that_a_link_holds, "announces esim.reserved, which never comes"),
]
