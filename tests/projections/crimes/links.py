"""What breaks the invariants of links."""

from uuid import uuid4

from domain.accounts.paid_price import PaidPrice, Repayment
from domain.links.bought_plan import TakenOver
from domain.links.link import Link
from tests.domain.build_links import bought
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crime, LinkForger

OTHER = "8988247000000000017"
MICROS = 100_000


def a_link_that_costs_another_sum_than_its_plan(forger: LinkForger) -> int:
    (requested,) = forger.request().collect_events()
    return forger.write(forged(requested, price=PaidPrice(1, "USD", uuid4())))


def a_second_esim(forger: LinkForger) -> int:
    link = forger.reserved("0")
    return forger.write(forger.fact(link, Link.EsimReserved, iccid=OTHER, sponsor_profile=None))


def an_intent_without_an_esim(forger: LinkForger) -> int:
    link, until = forger.requested(), forger.cause.at
    return forger.write(forger.fact(link, Link.EndpointRequested, attempt=1, until=until))


def an_endpoint_without_an_intent(forger: LinkForger) -> int:
    facts = {"endpoint_id": "endpoint-1", "addon_id": None, "adopted": False}
    return forger.write(forger.fact(forger.reserved(), Link.EndpointCreated, **facts))


def an_activation_without_an_endpoint(forger: LinkForger) -> int:
    return forger.write(forger.activated(forger.begun()))


def an_activation_after_a_failure(forger: LinkForger) -> int:
    return forger.write(forger.activated(forger.failed_link()))


def an_activation_without_payment(forger: LinkForger) -> int:
    link = forger.requested()
    *taken, charge = forger.reservation(link)
    link.request_endpoint(forger.cause.at, forger.cause)
    forger.write(*taken, *link.collect_events())
    position = forger.write(*forger.activation(link))
    forger.write(charge)  # It comes all the same, and too late.
    return position


def an_activation_with_another_plan(forger: LinkForger) -> int:
    created, activated = forger.activation(forger.begun())
    return forger.write(created, forged(activated, plan=bought("0.10", "Another plan")))


def an_activation_of_another_esim(forger: LinkForger) -> int:
    created, activated = forger.activation(forger.begun())
    return forger.write(created, forged(activated, iccid=OTHER))


def a_failed_link_that_keeps_its_money(forger: LinkForger) -> int:
    return forger.write(forger.failure(forger.begun(), refund=None))


def a_refund_where_nothing_was_taken(forger: LinkForger) -> int:
    return forger.write(forger.failure(forger.requested(), refund=Repayment(MICROS, uuid4())))


def a_refund_that_nobody_announced(forger: LinkForger) -> int:
    link = forger.active()
    price = link.requested.price
    assert price is not None
    return forger.write(forger.refund("activation", link.id, Repayment(MICROS, uuid4()), price))


def a_refund_of_the_charge_of_another_link(forger: LinkForger) -> int:
    link, other = forger.begun(), forger.begun()
    failed = forger.failure(link)
    back = forger.money_back(link, failed)
    assert other.requested.price is not None
    return forger.write(failed, forged(back, charge_id=other.requested.price.transaction_id))


def a_link_that_fails_twice(forger: LinkForger) -> int:
    return forger.write(forger.gives_up(forger.failed_link()))


def a_link_that_fails_when_it_is_active(forger: LinkForger) -> int:
    return forger.write(forger.gives_up(forger.active()))


def a_failed_link_that_forgets_its_esim(forger: LinkForger) -> int:
    return forger.write(forger.gives_up(forger.reserved("0"), iccid=None))


def an_endpoint_removed_from_a_live_link(forger: LinkForger) -> int:
    return forger.write(forger.fact(forger.active(), Link.EndpointRemoved, endpoint_id="e"))


def a_sold_link_that_begins_with_more_plans(forger: LinkForger) -> int:
    created, activated = forger.activation(forger.begun())
    forger.write(created)
    return forger.write(forged(activated, bought_at=forger.cause.at))


def an_imported_link(forger: LinkForger, iccid: str) -> int:
    plan = TakenOver(uuid4(), bought(price="0"), forger.cause.at)
    link = Link.take_over(
        uuid4(),
        forger.cause,
        organization_id=forger.organization_id,
        name=None,
        iccid=iccid,
        endpoint_id="e",
        sponsor_profile=None,
        plans=[plan],
        lpa=None,
    )
    imported, *more = link.collect_events()
    position = forger.write(imported)
    forger.write(*more)
    return position


def an_imported_link_with_the_esim_of_another(forger: LinkForger) -> int:
    held = forger.active().iccid
    assert held is not None
    return an_imported_link(forger, held)


def an_endpoint_found_of_a_live_link(forger: LinkForger) -> int:
    return forger.write(forger.fact(forger.active(), Link.EndpointFound, endpoint_id="e"))


def a_suspension_of_an_unfinished_link(forger: LinkForger) -> int:
    return forger.write(forger.fact(forger.begun(), Link.Suspended))


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


CRIMES: dict[Crime, str] = {
    a_link_that_costs_another_sum_than_its_plan: "costs another sum than its plan",
    a_second_esim: "has EsimReserved while it is reserved",
    an_intent_without_an_esim: "has EndpointRequested while it is requested",
    an_endpoint_without_an_intent: "has EndpointCreated while it is reserved",
    an_activation_without_an_endpoint: "has Activated while it is begun",
    an_activation_after_a_failure: "has Activated while it is failed",
    an_activation_without_payment: "is active and was not paid for",
    an_activation_with_another_plan: "has another plan than was asked for",
    an_activation_of_another_esim: "names another eSIM than it holds",
    a_failed_link_that_keeps_its_money: "another sum back than it was charged",
    a_refund_where_nothing_was_taken: "another sum back than it was charged",
    a_refund_that_nobody_announced: "has no failure that names it",
    a_refund_of_the_charge_of_another_link: "names no charge of its reason",
    a_link_that_fails_twice: "has ProvisioningFailed while it is failed",
    a_link_that_fails_when_it_is_active: "has ProvisioningFailed while it is active",
    a_failed_link_that_forgets_its_esim: "names another eSIM than it holds",
    a_sold_link_that_begins_with_more_plans: "begins with plans that nobody has bought",
    an_imported_link_with_the_esim_of_another: "takes the eSIM that link",
    an_endpoint_found_of_a_live_link: "has EndpointFound while it is active",
    an_endpoint_removed_from_a_live_link: "has EndpointRemoved while it is active",
    a_suspension_of_an_unfinished_link: "has Suspended while it is begun",
    a_link_that_moves_after_it_has_failed_empty_handed: "or after its end",
    a_link_that_moves_after_its_end: "or after its end",
    a_link_that_changes_its_organization: "changes its organization",
}
