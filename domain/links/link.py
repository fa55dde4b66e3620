"""A link: an eSIM that an organization bought, from the request to its plans and status."""

from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Literal, Self, get_args
from uuid import UUID

from domain.accounts.paid_price import GivenBack, PaidPrice, Repaying, Repayment, price_of
from domain.accounts.refund_by_hand import Refundable, RefundByHand
from domain.catalogue.plan import SIMULATED, SponsorProfile
from domain.cause import Cause
from domain.cost import Cost
from domain.daily import Daily
from domain.errors import LinkEnded
from domain.ids import derive_id
from domain.links.bought_plan import Activation, BoughtPlan, TakenOver
from domain.links.network import Addon, Endpoint, LinkStatus
from domain.log.aggregate import NOTHING, SOMETHING, TRUE, ByOperator, Created, Root, itself, sets
from domain.personal import Sealed, in_clear

EndKind = Literal["cancel", "end"]
LinkState = Literal[LinkStatus, "ended"]
LINK_STATES: Sequence[LinkState] = get_args(LinkState)


class Stage(StrEnum):
    """How far the provisioning of a link has come."""

    REQUESTED = "requested"
    RESERVED = "reserved"
    ENDPOINT_REQUESTED = "endpoint_requested"
    ORDERING = "ordering"
    ORDERED = "ordered"  # Only within the commit of the activation.
    ACTIVE = "active"
    FAILED = "failed"  # The money is back; an eSIM that it holds must still be cleaned up.
    ENDPOINT_REMOVED = "endpoint_removed"
    ENDED = "ended"


NOTIFIED_PERCENT = (50, 80, 100)  # The shares of a plan's data at which partners are notified.
RENAMES_MAX = 50  # On a day.
RENAMED = f"The link was renamed {RENAMES_MAX} times today."
HANDOVERS_MAX = 50  # On a day.
HANDED_OVER = f"The link was handed over {HANDOVERS_MAX} times today."
REFUSED_WAIT = timedelta(hours=1)  # Doubled each time, because only a person can fix this.
REFUSED_WAIT_MAX = timedelta(days=1)
MAY_FAIL = {Stage.REQUESTED, Stage.RESERVED, Stage.ENDPOINT_REQUESTED, Stage.ORDERING}


class Link(Refundable):
    """What a partner bought. Its organization can see it only after its activation.

    `requested` is the first event. `stage` is how far the provisioning has come, by the table in
    `domain.links.saga`. `status` is what the network last showed.
    """

    TOPIC = "link"
    KIND = "link"

    class Event(Root.Event):
        organization_id: UUID

    class Began(Event, Created):
        """`price` is None for a plan that costs nothing; `sponsor_profiles` are tried in order.

        A name is read by `named`. `unawaited`: the sender was answered at once, so a failure stays
        bound to the key.
        """

        TOPIC = "link.began"  # Never triggered itself.

        name: str | None
        plan: BoughtPlan
        sponsor_profiles: list[SponsorProfile]
        price: PaidPrice | None
        deadline: datetime
        unawaited: bool | None = field(default=None, kw_only=True)
        sealed_name: Sealed | None = field(default=None, kw_only=True)

        def apply(self, aggregate: "Link") -> None:
            aggregate.requested = self
            aggregate.organization_id = self.organization_id
            aggregate.name = named(self)
            aggregate.activations = {}
            aggregate.left_over = {}
            aggregate.of_plans = {}

    class Requested(Began):
        TOPIC = "link.requested"
        IS_STEP = True

    class Imported(Began, ByOperator):
        """A link that was issued elsewhere; saved with the stream of its eSIM and its activation.

        Nothing was paid for it here, so nothing is ever given back.
        """

        TOPIC = "link.imported"

        iccid: str
        sponsor_profile: SponsorProfile | None

        def apply(self, aggregate: "Link") -> None:
            Link.Began.apply(self, aggregate)
            aggregate.stage = Stage.ORDERED
            aggregate.iccid = self.iccid
            aggregate.sponsor_profile = self.sponsor_profile

    class EsimReserved(Event):
        """An eSIM was found and paid for; saved together with its stream and the charge."""

        TOPIC = "link.esim_reserved"
        IS_STEP = True
        SETS = sets("iccid", "sponsor_profile", stage=Stage.RESERVED)

        iccid: str
        sponsor_profile: SponsorProfile | None

    class EndpointRequested(Event):
        """An intent: its writer alone calls the network, and the call is over at `until`.

        `claim` is random, so two workers never write the same bytes. A worker that finds its own
        bytes in the log thus knows that its commit succeeded. Older events have None.
        """

        TOPIC = "link.endpoint_requested"
        IS_STEP = True
        SETS = sets(stage=Stage.ENDPOINT_REQUESTED, intent=itself)

        attempt: int
        until: datetime
        claim: UUID | None = field(default=None, kw_only=True)

    class OrderRequested(Event):
        """An intent: its writer alone orders, and the call is over at `until`.

        The first one is saved with the charge. `item` is the plan as the network calls it. `claim`
        is random, as in `EndpointRequested`.
        """

        TOPIC = "link.order_requested"
        IS_STEP = True

        attempt: int
        until: datetime
        network: str
        item: str
        claim: UUID

        def apply(self, aggregate: "Link") -> None:
            aggregate.stage = Stage.ORDERING
            aggregate.intent = self
            aggregate.ordered_since = aggregate.ordered_since or self.timestamp

    class OrderPlaced(Event):
        """The eSIM came with its order; saved together with its stream and the activation.

        `adopted`: the reply was lost, and the link took an equal order that no other link had.
        `placed_at` is by the network's clock.
        """

        TOPIC = "link.order_placed"
        IS_STEP = True
        SETS = sets("iccid", stage=Stage.ORDERED, order=itself)

        order_reference: str
        iccid: str
        placed_at: datetime
        adopted: bool

    class EndpointCreated(Event):
        """`adopted`: the reply was lost, and the endpoint was found by its reference."""

        TOPIC = "link.endpoint_created"
        SETS = sets("endpoint_id", "addon_id")

        endpoint_id: str
        addon_id: str | None
        adopted: bool

    class Activated(Event):
        """The whole link at its activation, so that a reader needs no earlier event.

        Only imported links have `bought_at` (of the first plan) and `more` (the other plans).
        """

        TOPIC = "link.activated"

        endpoint_id: str
        addon_id: str | None
        iccid: str
        sponsor_profile: SponsorProfile | None
        name: str | None
        plan: BoughtPlan
        activation_id: UUID
        lpa: Sealed | None
        cost: Cost | None = field(default=None, kw_only=True)
        bought_at: datetime | None = field(default=None, kw_only=True)
        more: list[TakenOver] | None = field(default=None, kw_only=True)
        sealed_name: Sealed | None = field(default=None, kw_only=True)

        def apply(self, aggregate: "Link") -> None:
            aggregate.stage = Stage.ACTIVE
            aggregate.status = "active"
            aggregate.activated_at = self.timestamp
            aggregate.lpa = self.lpa
            for each in self.taken_over:
                aggregate.activations[each.activation_id] = Activation(
                    each.activation_id, each.plan, each.bought_at, each.addon_id
                )

        @property
        def taken_over(self) -> list[TakenOver]:
            """All plans with which the link begins, in order of purchase."""
            bought_at = self.bought_at or self.timestamp
            first = TakenOver(self.activation_id, self.plan, bought_at, self.addon_id)
            return [first, *(self.more or [])]

    class ProvisioningFailed(Event, Repaying):
        """`iccid` is the eSIM still to be freed; the network may use it until `settled_at`."""

        TOPIC = "link.provisioning_failed"

        code: str
        details: dict[str, str]
        iccid: str | None
        refund: Repayment | None
        settled_at: datetime | None

        def apply(self, aggregate: "Link") -> None:
            aggregate.stage = Stage.FAILED if self.iccid is not None else Stage.ENDED
            aggregate.failure = self

    class EndpointFound(Event):
        """A failed link turned out to have an endpoint, which is removed next.

        It is recorded before the removal, because a removal that stops halfway detaches the eSIM.
        Then the endpoint can no longer be found by its eSIM, and we still pay for it.
        """

        TOPIC = "link.endpoint_found"
        SETS = sets("endpoint_id")

        endpoint_id: str

    class EndpointRemoved(Event):
        """A late endpoint of a failed link was found and removed."""

        TOPIC = "link.endpoint_removed"
        SETS = sets(stage=Stage.ENDPOINT_REMOVED)

        endpoint_id: str

    class LeftOver(Event):
        """An incident: something of this link stays at its network that nobody pays us for."""

        TOPIC = "link.left_over"  # Never triggered itself.

        plan: BoughtPlan
        cost: Cost | None

    class PlanLeftOver(LeftOver):
        """The link has a plan at the network that nobody bought, and the network keeps it there."""

        TOPIC = "link.plan_left_over"

        addon_id: str

        def apply(self, aggregate: "Link") -> None:
            aggregate.left_over[self.addon_id] = 1

    class EndpointLeftOver(LeftOver):
        """The network refuses to remove the late endpoint; it is asked again after `until`."""

        TOPIC = "link.endpoint_left_over"

        endpoint_id: str
        attempt: int
        until: datetime

        def apply(self, aggregate: "Link") -> None:
            aggregate.left_over[self.endpoint_id] = self.attempt

    class EsimReleased(Event):
        """The eSIM of a failed link is free for others."""

        TOPIC = "link.esim_released"
        SETS = sets(stage=Stage.ENDED)

        iccid: str

    class LpaStored(Event):
        """The sealed activation code of the eSIM, which was missing at the activation."""

        TOPIC = "link.lpa_stored"
        SETS = sets("lpa")

        lpa: Sealed

    class ChangeOpened(Event):
        """A change of plans has begun; a link has at most one at a time."""

        TOPIC = "link.change_opened"

        change_id: UUID

        def apply(self, aggregate: "Link") -> None:
            aggregate.open_change = self.change_id
            aggregate.changes = (*aggregate.changes, self.change_id)

    class PlanAdded(Event):
        TOPIC = "link.plan_added"

        change_id: UUID
        activation_id: UUID
        plan: BoughtPlan
        addon_id: str | None
        cost: Cost | None = field(default=None, kw_only=True)

        def apply(self, aggregate: "Link") -> None:
            aggregate.activations[self.activation_id] = Activation(
                self.activation_id, self.plan, self.timestamp, self.addon_id
            )

    class PlanRemoved(Event):
        TOPIC = "link.plan_removed"

        change_id: UUID
        activation_id: UUID

        def apply(self, aggregate: "Link") -> None:
            aggregate.activations[self.activation_id].removed_at = self.timestamp

    class ChangeClosed(Event):
        """The change of plans has ended, with whatever outcome."""

        TOPIC = "link.change_closed"
        SETS = sets(open_change=None)

        change_id: UUID

    class StatusRequested(Event, ByOperator):
        """An intent: its writer alone tells the network, and the call is over at `until`."""

        TOPIC = "link.status_requested"
        IS_STEP = True
        SETS = sets(open_call=itself)

        status: LinkStatus
        attempt: int
        until: datetime

    class StatusKept(Event):
        """The network did not do what was intended; `status` is what it has instead."""

        TOPIC = "link.status_kept"
        SETS = sets("status", open_call=None)

        status: LinkStatus

    class Suspended(Event, ByOperator):
        TOPIC = "link.suspended"
        SETS = sets(status="suspended", open_call=None)

    class Reactivated(Event, ByOperator):
        TOPIC = "link.reactivated"
        SETS = sets(status="active", open_call=None)

    class StatusSeen(Event):
        """The network showed a status that differs from the log's."""

        TOPIC = "link.status_seen"
        SETS = sets("status")

        status: LinkStatus

    class Installed(Event):
        """The network has seen the eSIM in a device for the first time."""

        TOPIC = "link.installed"
        SETS = sets("installed_at")

        installed_at: datetime

    class FirstUsed(Event):
        """The network has carried its first traffic."""

        TOPIC = "link.first_used"
        SETS = sets("first_used_at")

        first_used_at: datetime

    class OfPlan(Event):
        """What a plan has come to; recorded once, even if the network shows it otherwise later."""

        TOPIC = "link.of_plan"  # Never triggered itself.

        activation_id: UUID

        def apply(self, aggregate: "Link") -> None:
            aggregate.of_plans[type(self), self.activation_id] = self

    class UsageReached(OfPlan):
        """A share of its data is used up; recorded after all lower shares."""

        TOPIC = "link.usage_reached"

        percent: int

    class ExpiryNear(OfPlan):
        TOPIC = "link.expiry_near"

        expires_at: datetime

    class PlanStarted(OfPlan):
        """The network shows when it ends."""

        TOPIC = "link.plan_started"

        expires_at: datetime

    class PlanEnded(OfPlan):
        TOPIC = "link.plan_ended"

    class Renamed(Event, ByOperator):
        TOPIC = "link.renamed"

        name: str | None
        sealed_name: Sealed | None = field(default=None, kw_only=True)

        def apply(self, aggregate: "Link") -> None:
            aggregate.name = named(self)
            aggregate.renames = aggregate.renames.again(self.timestamp)

    class HandoverSet(Event):
        """The traveller's address that counts from now on; None: none does."""

        TOPIC = "link.handover_set"

        handover_id: UUID | None

        def apply(self, aggregate: "Link") -> None:
            aggregate.handover = self.handover_id
            if self.handover_id is not None:
                aggregate.handovers = aggregate.handovers.again(self.timestamp)

    class EndRequested(Event, ByOperator):
        """An intent: its writer alone ends the link at the network, and stops at `until`."""

        TOPIC = "link.end_requested"
        IS_STEP = True
        SETS = sets(open_call=itself)

        kind: EndKind
        until: datetime

    class EndKept(Event):
        """The network has not ended the link, and the call can no longer have an effect."""

        TOPIC = "link.end_kept"
        SETS = sets(open_call=None)

    class Ended(Event, Repaying, ByOperator):
        """The link has ended for good. If it was cancelled, the rest of its charges is refunded.

        `refunds` are those of its activation and its top-ups. This commit repeats the refunds of a
        top-up in the stream of its plan change, which bounds them.
        """

        TOPIC = "link.ended"
        WHY = "cancelled"
        SETS = sets(stage=Stage.ENDED, open_call=None, ended=itself)

        reason: Literal["cancelled", "ended"]
        refunds: list[GivenBack]

    class RefundedByHand(RefundByHand):
        TOPIC = "link.refunded_by_hand"

    STAGES: ClassVar = {
        "stage": {
            EsimReserved: {Stage.REQUESTED},
            EndpointRequested: {Stage.RESERVED, Stage.ENDPOINT_REQUESTED},
            OrderRequested: {Stage.REQUESTED, Stage.ORDERING},
            OrderPlaced: {Stage.ORDERING},
            EndpointCreated: {Stage.ENDPOINT_REQUESTED, Stage.ORDERED},
            Activated: {Stage.ENDPOINT_REQUESTED, Stage.ORDERED},
            ProvisioningFailed: MAY_FAIL,
            EndpointFound: {Stage.FAILED},
            EndpointLeftOver: {Stage.FAILED},
            EndpointRemoved: {Stage.FAILED},
            EsimReleased: {Stage.FAILED, Stage.ENDPOINT_REMOVED},
        },
        "is_visible": dict.fromkeys((LpaStored, Renamed), TRUE),
        "is_live": dict.fromkeys(
            (
                *(ChangeOpened, StatusRequested, StatusSeen, Installed, FirstUsed, UsageReached),
                *(ExpiryNear, PlanStarted, PlanEnded, EndRequested, Ended, HandoverSet),
            ),
            TRUE,
        ),
        "open_change": {
            **dict.fromkeys((ChangeOpened, EndRequested, Ended), NOTHING),
            **dict.fromkeys((PlanAdded, PlanRemoved, ChangeClosed), SOMETHING),
        },
        "calling": {
            **dict.fromkeys((ChangeOpened, StatusRequested), (None, StatusRequested)),
            **dict.fromkeys((StatusKept, Suspended, Reactivated), (StatusRequested,)),
            EndRequested: NOTHING,
            EndKept: (EndRequested,),
        },
    }

    requested: Began
    name: Sealed | None
    activations: dict[UUID, Activation]
    left_over: dict[str, int]  # Ids at the network, and how often each was recorded.
    of_plans: dict[tuple[type[OfPlan], UUID], Any]  # The newest of each kind, by activation.
    stage: Stage = Stage.REQUESTED
    iccid: str | None = None
    sponsor_profile: SponsorProfile | None = None
    lpa: Sealed | None = None
    intent: EndpointRequested | OrderRequested | None = None
    ordered_since: datetime | None = None  # Since when an order of it may have been placed.
    order: OrderPlaced | None = None
    endpoint_id: str | None = None
    addon_id: str | None = None
    activated_at: datetime | None = None
    failure: ProvisioningFailed | None = None
    status: LinkStatus = "inactive"  # When last seen at the network.
    open_call: StatusRequested | EndRequested | None = None  # The intent of a request's call.
    ended: Ended | None = None
    open_change: UUID | None = None
    changes: tuple[UUID, ...] = ()  # Every change of its plans, in order.
    renames: Daily = Daily()
    handover: UUID | None = None
    handovers: Daily = Daily()
    installed_at: datetime | None = None
    first_used_at: datetime | None = None

    @classmethod
    def request(
        cls,
        link_id: UUID,
        cause: Cause,
        *,
        name: Sealed | None,
        plan: BoughtPlan,
        currency: str,
        **facts: Any,
    ) -> Self:
        """Request a link; nothing is charged before an eSIM has been found."""
        price = price_of(link_id, plan.price_micros, currency)
        facts |= {"name": None, "sealed_name": name, "plan": plan, "price": price}
        return cls.begin(Link.Requested, cause, link_id, **facts)

    @classmethod
    def take_over(  # noqa: PLR0913  # An event is whole: each argument is one of its facts.
        cls,
        link_id: UUID,
        cause: Cause,
        *,
        name: Sealed | None,
        iccid: str,
        endpoint_id: str,
        plans: Sequence[TakenOver],
        lpa: Sealed | None,
        **facts: Any,
    ) -> Self:
        """Begin a link that was issued elsewhere; saved together with the stream of its eSIM."""
        first, *more = plans
        facts |= {"name": None, "sealed_name": name, "iccid": iccid, "plan": first.plan}
        facts |= {"sponsor_profiles": [], "price": None, "deadline": cause.at}
        made = cls.begin(Link.Imported, cause, link_id, **facts)
        endpoint = Endpoint(endpoint_id, iccid, str(link_id), first.addon_id)
        made.activate(
            endpoint, lpa, cause, adopted=True, bought_at=first.bought_at, more=more or None
        )
        return made

    @property
    def network(self) -> str:
        """The name of the network on which the link and all its plans run."""
        return self.requested.plan.network or SIMULATED

    @property
    def endpoint(self) -> str:
        """The id of its endpoint at the network, which every visible link has."""
        assert self.endpoint_id is not None
        return self.endpoint_id

    @property
    def attempts(self) -> int:
        """How often the creation of the endpoint, or the order, was started."""
        return self.intent.attempt if self.intent is not None else 0

    @property
    def is_answered(self) -> bool:
        return self.stage not in MAY_FAIL

    @property
    def is_visible(self) -> bool:
        """Tell whether its organization can see the link."""
        return self.activated_at is not None

    @property
    def is_live(self) -> bool:
        return self.activated_at is not None and self.ended is None

    @property
    def state(self) -> LinkState:
        return self.status if self.ended is None else "ended"

    @property
    def calling(self) -> type[Event] | None:
        return None if self.open_call is None else type(self.open_call)

    @property
    def current_activations(self) -> list[Activation]:
        """The activations that have not been removed, in order of purchase."""
        return [each for each in self.activations.values() if each.removed_at is None]

    def require_live(self) -> None:
        if self.ended is not None:
            raise LinkEnded

    def request_endpoint(self, until: datetime, cause: Cause, claim: UUID | None = None) -> None:
        """State the intent before the call; only its writer may call, until that moment."""
        facts = {"attempt": self.attempts + 1, "until": until, "claim": claim}
        self.record(Link.EndpointRequested, cause, **facts)

    def request_order(self, network: str, until: datetime, cause: Cause, claim: UUID) -> None:
        """State the intent before the order; the first one is saved together with the charge."""
        facts = {"attempt": self.attempts + 1, "until": until, "network": network, "claim": claim}
        item = self.requested.plan.provider_plan_id
        self.record(Link.OrderRequested, cause, **facts, item=item)

    def activate(
        self,
        endpoint: Endpoint,
        lpa: Sealed | None,
        cause: Cause,
        *,
        adopted: bool,
        **taken_over: datetime | list[TakenOver] | None,
    ) -> None:
        """Record that the network created the endpoint; the link is active with its first plan."""
        assert endpoint.reference == str(self.id), "an endpoint of somebody else"
        made = {"endpoint_id": endpoint.endpoint_id, "addon_id": endpoint.addon_id}
        self.record(Link.EndpointCreated, cause, **made, adopted=adopted)
        self.record(
            Link.Activated,
            cause,
            **made,
            iccid=self.iccid,
            sponsor_profile=self.sponsor_profile,
            name=self.requested.name,
            sealed_name=self.requested.sealed_name,
            plan=self.requested.plan,
            activation_id=derive_id("activation", self.id, 0),
            lpa=lpa,
            cost=endpoint.cost
            or self.requested.plan.cost_of(endpoint.addon_id or endpoint.endpoint_id),
            **taken_over,
        )

    def fail(
        self, code: str, details: dict[str, str], settled_at: datetime | None, cause: Cause
    ) -> Repayment | None:
        """Give up; return the refund, which the wallet must record in the same commit.

        `settled_at` is when the network can no longer create the endpoint; None if that is now.
        """
        refund = None
        price = self.requested.price
        if price is not None and self.stage is not Stage.REQUESTED:
            refund = Repayment(price.amount_micros, derive_id("refund", self.id))
        self.record(
            Link.ProvisioningFailed,
            cause,
            code=code,
            details=details,
            iccid=self.iccid,
            refund=refund,
            settled_at=settled_at,
        )
        return refund

    def record_endpoint_left_over(self, cause: Cause) -> None:
        """Note that the network refuses to remove the late endpoint of this failed link."""
        attempt = self.left_over.get(self.endpoint, 0) + 1
        facts: dict[str, Any] = {"endpoint_id": self.endpoint, "attempt": attempt}
        until = cause.at + min(REFUSED_WAIT * 2 ** (attempt - 1), REFUSED_WAIT_MAX)
        plan = self.requested.plan
        facts |= {"plan": plan, "cost": plan.cost_of(self.endpoint)}
        self.record(Link.EndpointLeftOver, cause, **facts, until=until)

    def record_plan_left_over(self, addon_id: str, plan: BoughtPlan, cause: Cause) -> None:
        """Note a plan on this link that nobody has bought; each is noted once."""
        if addon_id not in self.left_over:
            cost = plan.cost_of(addon_id)
            self.record(Link.PlanLeftOver, cause, addon_id=addon_id, plan=plan, cost=cost)

    def add_plan(self, activation_id: UUID, plan: BoughtPlan, addon: Addon, cause: Cause) -> None:
        assert activation_id not in self.activations, activation_id
        facts = {"activation_id": activation_id, "plan": plan, "addon_id": addon.addon_id}
        facts["cost"] = addon.cost or plan.cost_of(addon.addon_id)
        self.record(Link.PlanAdded, cause, change_id=self.open_change, **facts)

    def remove_plan(self, activation_id: UUID, cause: Cause) -> None:
        assert self.activations[activation_id].removed_at is None, activation_id
        self.record(
            Link.PlanRemoved, cause, change_id=self.open_change, activation_id=activation_id
        )

    def request_status(self, status: LinkStatus, until: datetime, cause: Cause) -> None:
        """State the intent before the network is told to suspend or resume."""
        attempt = getattr(self.open_call, "attempt", 0) + 1
        self.record(Link.StatusRequested, cause, status=status, attempt=attempt, until=until)

    def settle_status(self, status: LinkStatus, cause: Cause) -> None:
        """Close the intent with the status that the network has now."""
        assert isinstance(self.open_call, Link.StatusRequested)
        if status != self.open_call.status:
            self.record(Link.StatusKept, cause, status=status)
        else:
            done = Link.Suspended if status == "suspended" else Link.Reactivated
            self.record(done, cause)

    def record_seen(
        self,
        status: LinkStatus,
        installed_at: datetime | None,
        first_used_at: datetime | None,
        cause: Cause,
    ) -> None:
        """Record what the network shows and the log lacks; nothing if the link has ended."""
        if self.ended is not None:
            return
        if status != self.status and self.open_call is None:
            self.record(Link.StatusSeen, cause, status=status)
        if installed_at is not None and self.installed_at is None:
            self.record(Link.Installed, cause, installed_at=installed_at)
        if first_used_at is not None and self.first_used_at is None:
            self.record(Link.FirstUsed, cause, first_used_at=first_used_at)

    def record_used(self, activation_id: UUID, percent: float, cause: Cause) -> None:
        """Record each used-up share of a plan once, the lowest first, while the link is live."""
        assert activation_id in self.activations, activation_id
        for step in NOTIFIED_PERCENT:
            if self.is_live and self.notified_percent(activation_id) < step <= percent:
                self.record(Link.UsageReached, cause, activation_id=activation_id, percent=step)

    def notified_percent(self, activation_id: UUID) -> int:
        newest = self.of_plans.get((Link.UsageReached, activation_id))
        return newest.percent if newest is not None else 0

    def record_once(
        self, event: type[OfPlan], activation_id: UUID, cause: Cause, **facts: datetime
    ) -> None:
        """Record once that a plan of a live link has begun, ends soon or is over."""
        assert activation_id in self.activations, activation_id
        if self.is_live and (event, activation_id) not in self.of_plans:
            self.record(event, cause, activation_id=activation_id, **facts)

    def rename(self, name: Sealed | None, cause: Cause) -> None:
        """Give it another name, or none; the caller compares a sealed one with the present name.

        Raises RateLimited, because every load of the link reads all its events.
        """
        if name != self.name:
            self.renames.require_less(RENAMES_MAX, cause.at, RENAMED)
            self.record(Link.Renamed, cause, name=None, sealed_name=name)

    def hand_over(self, handover_id: UUID | None, cause: Cause) -> None:
        """Let another address count for its traveller, or none; raises RateLimited."""
        if handover_id is not None:
            self.handovers.require_less(HANDOVERS_MAX, cause.at, HANDED_OVER)
        if self.is_live and handover_id != self.handover:
            self.record(self.HandoverSet, cause, handover_id=handover_id)

    def forget_name(self, cause: Cause) -> None:
        """End a name that stands in the log in clear, as if it were renamed to none."""
        if self.name is not None and not self.name.month:
            self.record(Link.Renamed, cause, name=None)

    def end(self, topups: Sequence[GivenBack], cause: Cause) -> list[GivenBack]:
        """End it; return all refunds, which the wallet must record in the same commit.

        Without an intent the link ends only in our log, because its network cannot end links.
        `topups` are the refunds of its plan changes, which are saved together with it.
        """
        intent = self.open_call
        is_cancelled = isinstance(intent, Link.EndRequested) and intent.kind == "cancel"
        refunds = [*self.left(), *topups] if is_cancelled else []
        reason = "cancelled" if is_cancelled else "ended"
        self.record(Link.Ended, cause, reason=reason, refunds=refunds)
        return refunds

    def paid(self) -> Iterable[tuple[PaidPrice, int]]:
        price, failure = self.requested.price, self.failure
        refund: Repayment | None = failure.refund if failure else None
        if price and self.ended:
            mine = (e for e in self.ended.refunds if e.charge_id == price.transaction_id)
            refund = next(mine, None)
        # The commit of the charge also has the eSIM, or the intent to order one.
        is_paid = self.iccid is not None or self.ordered_since is not None
        return [(price, refund.amount_micros if refund else 0)] if price and is_paid else []

    def still_open(self) -> str | None:
        if self.failure is None and not self.is_visible:
            return "the link is not active yet, and may still fail"
        if self.calling is Link.EndRequested:
            return "an end of the link is open"
        return "a change of the link's plans is open" if self.open_change is not None else None


def named(event: Link.Began | Link.Activated | Link.Renamed) -> Sealed | None:
    """Return the name in an event; releases before 1.0.0 did not seal it."""
    return event.sealed_name or in_clear(event.name)


def status_after(event: object) -> LinkState | None:
    """Return the status that an event gives to its link; None if it gives none."""
    match event:
        case Link.Activated() | Link.Reactivated():
            return "active"
        case Link.Suspended():
            return "suspended"
        case Link.Ended():
            return "ended"
        case Link.StatusSeen() | Link.StatusKept():
            return event.status
        case _:
            return None
