"""One canonical example of every event of links, eSIMs, plan changes and monthly fees."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.paid_price import GivenBack, PaidPrice, Repayment
from domain.catalogue.plan import SponsorProfile
from domain.cost import Cost
from domain.links.bought_plan import BoughtPlan
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import Addition, PlanChange, Removal
from domain.log.aggregate import Event
from tests.golden.building import (
    AT,
    CHARGE,
    ORGANIZATION,
    PRICE,
    SEALED,
    TRANSACTION,
    WHOLE_SECOND,
    created,
    event,
)

LINK = UUID("55555555-5555-5555-8555-555555555555")
CHANGE = UUID("66666666-6666-5666-8666-666666666666")
ACTIVATION = UUID("77777777-7777-5777-8777-777777777777")
REMOVED = UUID("99999999-9999-5999-8999-999999999999")
ICCID = "8988247000000000017"
LATER = AT + timedelta(seconds=15)
PROFILE = SponsorProfile("sp-1", "Ærø", "#1F6FEB")
PLAN = BoughtPlan(
    plan_id=UUID("88888888-8888-4888-8888-888888888888"),
    provider_plan_id="li-1500mb-7d",
    name="Liechtenstein & Österreich 1.5 GB",
    price_micros=5_000,
    data_mb=1500,
    validity_days=7,
    countries=["LI", "AT"],
)


def _link(event_class: type[Event], /, **facts: Any) -> Event:
    return event(event_class, organization_id=ORGANIZATION, **facts)


def _change(event_class: type[Event], /, **facts: Any) -> Event:
    return event(event_class, organization_id=ORGANIZATION, link_id=LINK, **facts)


LINK_EVENTS: tuple[Event, ...] = (
    created(
        Link.Requested,
        "link",
        organization_id=ORGANIZATION,
        name="Grüße aus Vaduz 😀",
        plan=PLAN,
        sponsor_profiles=[PROFILE, SponsorProfile("sp-2", "Boreal", "teal")],
        price=PRICE,
        deadline=LATER,
    ),
    created(
        Link.Imported,
        "link",
        organization_id=ORGANIZATION,
        name=None,
        plan=PLAN,
        sponsor_profiles=[],
        price=None,
        deadline=AT,
        iccid=ICCID,
        sponsor_profile=PROFILE,
    ),
    _link(Link.EsimReserved, iccid=ICCID, sponsor_profile=PROFILE),
    _link(Link.EndpointRequested, attempt=2, until=WHOLE_SECOND),
    _link(
        Link.OrderRequested,
        attempt=1,
        until=WHOLE_SECOND,
        network="esimgo",
        item="esim_1GB_7D_LI_V2",
        claim=CHANGE,
    ),
    _link(Link.OrderPlaced, order_reference="order-ä-7", iccid=ICCID, placed_at=AT, adopted=True),
    _link(Link.EndpointCreated, endpoint_id="ep-1", addon_id="addon-1", adopted=True),
    _link(
        Link.Activated,
        endpoint_id="ep-1",
        addon_id=None,
        iccid=ICCID,
        sponsor_profile=None,
        name=None,
        plan=PLAN,
        activation_id=ACTIVATION,
        lpa=SEALED,
    ),
    _link(
        Link.ProvisioningFailed,
        code="INSUFFICIENT_BALANCE",
        details={"required": "0.005", "available": "0", "currency": "EUR"},
        iccid=ICCID,
        refund=Repayment(5_000, TRANSACTION),
        settled_at=LATER,
    ),
    _link(Link.EndpointFound, endpoint_id="ep-1"),
    _link(Link.EndpointRemoved, endpoint_id="ep-1"),
    _link(Link.PlanLeftOver, plan=PLAN, cost=None, addon_id="addon-1"),
    _link(Link.EndpointLeftOver, plan=PLAN, cost=None, endpoint_id="ep-1", attempt=2, until=LATER),
    _link(Link.EsimReleased, iccid=ICCID),
    _link(Link.LpaStored, lpa=SEALED),
    _link(Link.ChangeOpened, change_id=CHANGE),
    _link(
        Link.PlanAdded,
        change_id=CHANGE,
        activation_id=ACTIVATION,
        plan=PLAN,
        addon_id="addon-2",
    ),
    _link(Link.PlanRemoved, change_id=CHANGE, activation_id=ACTIVATION),
    _link(Link.ChangeClosed, change_id=CHANGE),
    _link(Link.StatusRequested, status="suspended", attempt=1, until=LATER),
    _link(Link.StatusKept, status="inactive"),
    _link(Link.Suspended),
    _link(Link.Reactivated),
    _link(Link.StatusSeen, status="active"),
    _link(Link.Installed, installed_at=LATER),
    _link(Link.FirstUsed, first_used_at=WHOLE_SECOND),
    _link(Link.UsageReached, activation_id=ACTIVATION, percent=80),
    _link(Link.ExpiryNear, activation_id=ACTIVATION, expires_at=LATER),
    _link(Link.PlanStarted, activation_id=ACTIVATION, expires_at=LATER),
    _link(Link.PlanEnded, activation_id=ACTIVATION),
    _link(Link.Renamed, name="Lastwagen Å 7"),
    _link(Link.EndRequested, kind="cancel", until=LATER),
    _link(Link.EndKept),
    _link(
        Link.Ended,
        reason="cancelled",
        refunds=[GivenBack(5_000, TRANSACTION, CHARGE), GivenBack(1, CHANGE, ACTIVATION)],
    ),
    created(Esim.Registered, "esim", network="simulated", iccid=ICCID),
    event(Esim.Reserved, link_id=LINK),
    event(Esim.Quarantined, link_id=LINK, until=LATER),
    event(Esim.Released, link_id=LINK),
    created(
        LostOrder.Opened,
        "lost_order",
        organization_id=ORGANIZATION,
        link_id=LINK,
        network="esimgo",
        plan=PLAN,
        since=AT,
        until=WHOLE_SECOND,
        settled_at=LATER,
    ),
    _change(
        LostOrder.Found,
        order_reference="order-ä-7",
        iccid=ICCID,
        placed_at=AT,
        cost=Cost(2_099_999, "USD", "order-ä-7", estimated=False),
    ),
    _change(LostOrder.TakenBack, order_reference="order-ä-7", iccid=ICCID),
    _change(LostOrder.LeftOver, order_reference="order-ä-7", iccid=ICCID, plan=PLAN, cost=None),
    _change(LostOrder.Settled),
    created(
        PlanChange.Requested,
        "plan_change",
        organization_id=ORGANIZATION,
        link_id=LINK,
        removals=[Removal(REMOVED, PLAN)],
        additions=[Addition(ACTIVATION, PLAN, PRICE), Addition(LINK, PLAN, None)],
        deadline=LATER,
    ),
    _change(PlanChange.PlanRemovalStarted, index=0, attempt=1, until=LATER),
    _change(PlanChange.PlanRemovalDone, index=0),
    _change(PlanChange.PlanAdditionStarted, index=1, attempt=5, until=WHOLE_SECOND),
    _change(PlanChange.PlanAdditionDone, index=1, addon_id="addon-2", adopted=False),
    _change(
        PlanChange.Failed,
        code="PROVISIONING_ERROR",
        index=2,
        refunds=[Repayment(5_000, TRANSACTION)],
        settled_at=None,
    ),
    _change(PlanChange.Finished),
    _change(PlanChange.Returned, refunds=[GivenBack(5_000, TRANSACTION, CHARGE)]),
    created(
        MonthlyFee.Due,
        "monthly_fee",
        organization_id=ORGANIZATION,
        month="2026-03",
        fee_micros=5_000,
        link_ids=[LINK, CHANGE],
        price=PaidPrice(10_000, "EUR", TRANSACTION),
    ),
    event(
        MonthlyFee.Charged,
        organization_id=ORGANIZATION,
        month="2026-03",
        price=PaidPrice(10_000, "EUR", TRANSACTION),
    ),
)
