"""What the tests of links are made of: one link, its eSIM, its plans, and steps in its life."""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from domain.catalogue.plan import SponsorProfile
from domain.cause import Cause
from domain.links.bought_plan import BoughtPlan
from domain.links.link import Link
from domain.links.network import Addon, Endpoint, LinkStatus, Order
from domain.links.plan_change import PlanChange, Removal
from domain.money import parse_amount
from domain.personal import Sealed, in_clear
from tests.domain.build import ORGANIZATION, START, cause

LINK = UUID("3d7a5c1e-4b2f-5e8d-9a6c-0f1e2d3c4b5a")
CHANGE = UUID("8c6b4a29-1d3e-5f70-8b9a-7c5d3e1f2a4b")
ICCID = "8988247000000000017"
ENDPOINT_ID = "endpoint-1"
PROFILE = SponsorProfile("sp-1", "Atlas", "#1F6FEB")
LPA = Sealed("2026-03", b"sealed code")
DEADLINE = START + timedelta(seconds=15)
SETTLED_AT = START + timedelta(seconds=35)

LinkStep = Callable[[Link], object]
ChangeStep = Callable[[PlanChange], object]


def bought(price: str = "4.00", name: str = "Europe 5 GB") -> BoughtPlan:
    return BoughtPlan(
        plan_id=uuid4(),
        provider_plan_id="eu-5gb-30d",
        name=name,
        price_micros=parse_amount(price),
        data_mb=5_000,
        validity_days=30,
        countries=["AT", "DE"],
    )


def new_link(plan: BoughtPlan | None = None, now: Cause | None = None) -> Link:
    return Link.request(
        LINK,
        now or cause(),
        organization_id=ORGANIZATION,
        name=in_clear("Van 7"),
        plan=plan or bought(),
        sponsor_profiles=[PROFILE],
        currency="EUR",
        deadline=DEADLINE,
    )


def reserved(link: Link) -> None:
    link.record(Link.EsimReserved, cause(1), iccid=ICCID, sponsor_profile=PROFILE)


def begun(until: datetime = DEADLINE) -> LinkStep:
    """The intent to create the endpoint."""
    return lambda link: link.request_endpoint(until, cause(2))


def ordering(until: datetime = DEADLINE) -> LinkStep:
    """The intent to order."""
    return lambda link: link.request_order("orders", until, cause(1), CHANGE)


def ordered(link: Link) -> None:
    order = Order("order-1", ICCID, "eu-5gb-30d", START)
    link.record(Link.OrderPlaced, cause(2), **order.facts, adopted=False)


def activated(link: Link) -> None:
    endpoint = Endpoint(ENDPOINT_ID, ICCID, str(LINK), addon_id="addon-1")
    link.activate(endpoint, LPA, cause(3), adopted=False)


ACTIVE: tuple[LinkStep, ...] = (reserved, begun(), activated)


def failed(settled_at: datetime | None = None) -> LinkStep:
    return lambda link: link.fail("PROVISIONING_ERROR", {}, settled_at, cause(4))


def endpoint_removed(link: Link) -> None:
    link.record(Link.EndpointFound, cause(5), endpoint_id=ENDPOINT_ID)
    link.record(Link.EndpointRemoved, cause(5), endpoint_id=link.endpoint_id)


def esim_released(link: Link) -> None:
    link.record(Link.EsimReleased, cause(6), iccid=link.iccid)


def change_opened(change_id: UUID = CHANGE) -> LinkStep:
    return lambda link: link.record(Link.ChangeOpened, cause(7), change_id=change_id)


def plan_added(activation_id: UUID, plan: BoughtPlan, minute: int = 8) -> LinkStep:
    return lambda link: link.add_plan(activation_id, plan, Addon("addon-2"), cause(minute))


def plan_removed(activation_id: UUID, minute: int = 8) -> LinkStep:
    return lambda link: link.remove_plan(activation_id, cause(minute))


def status_requested(status: LinkStatus, until: datetime = DEADLINE) -> LinkStep:
    return lambda link: link.request_status(status, until, cause(7))


def status_settled(status: LinkStatus) -> LinkStep:
    return lambda link: link.settle_status(status, cause(8))


def seen(
    status: LinkStatus, installed_at: datetime | None = None, first_used_at: datetime | None = None
) -> LinkStep:
    return lambda link: link.record_seen(status, installed_at, first_used_at, cause(9))


def used(activation_id: UUID, percent: float) -> LinkStep:
    return lambda link: link.record_used(activation_id, percent, cause(9))


def ends_soon(activation_id: UUID, expires_at: datetime) -> LinkStep:
    return lambda link: link.record_once(
        Link.ExpiryNear, activation_id, cause(9), expires_at=expires_at
    )


def plan_started(activation_id: UUID, expires_at: datetime) -> LinkStep:
    return lambda link: link.record_once(
        Link.PlanStarted, activation_id, cause(9), expires_at=expires_at
    )


def plan_ended(activation_id: UUID) -> LinkStep:
    return lambda link: link.record_once(Link.PlanEnded, activation_id, cause(9))


def new_change(*prices: str, removals: int = 0) -> PlanChange:
    """A change that removes so many plans and adds one for each price."""
    return PlanChange.request(
        CHANGE,
        cause(),
        organization_id=ORGANIZATION,
        link_id=LINK,
        removals=[Removal(uuid4(), bought()) for _ in range(removals)],
        plans=[bought(price, f"Plan {index}") for index, price in enumerate(prices)],
        currency="EUR",
        deadline=DEADLINE,
    )


def started(until: datetime = DEADLINE) -> ChangeStep:
    return lambda change: change.start_step(until, cause(1))


def removal_done(change: PlanChange) -> None:
    change.record(PlanChange.PlanRemovalDone, cause(2), index=change.done)


def addition_done(change: PlanChange) -> None:
    change.record(
        PlanChange.PlanAdditionDone, cause(2), index=change.done, addon_id="addon-2", adopted=False
    )


def change_failed(settled_at: datetime | None = None) -> ChangeStep:
    return lambda change: change.fail("PROVISIONING_ERROR", settled_at, cause(3))


def finished(change: PlanChange) -> None:
    change.record(PlanChange.Finished, cause(4))
