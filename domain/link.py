"""A link: an eSIM activation of an organization, from its request to its plans and status."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from domain import link_events as events
from domain.activation import Activation, BoughtPlan
from domain.aggregate import Root
from domain.cause import Cause
from domain.ids import derive_id
from domain.link_events import Stage
from domain.network import Endpoint, LinkStatus
from domain.plan import SponsorProfile
from domain.ports import Sealed
from domain.price import Price, Repayment


class Link(Root):
    """What a partner bought. It exists for its organization only when it is active.

    `requested` says what was asked for; `stage` how far the provisioning has come, by the table in
    `domain.provisioning`. `status` is the network's as last seen.
    """

    TOPIC = "link"

    Event = events.LinkEvent  # Else the library would make subclasses of what follows.
    Requested = events.Requested
    EsimReserved = events.EsimReserved
    EndpointRequested = events.EndpointRequested
    EndpointCreated = events.EndpointCreated
    Activated = events.Activated
    ProvisioningFailed = events.ProvisioningFailed
    EndpointRemoved = events.EndpointRemoved
    EsimReleased = events.EsimReleased
    LpaStored = events.LpaStored
    ChangeOpened = events.ChangeOpened
    PlanAdded = events.PlanAdded
    PlanRemoved = events.PlanRemoved
    ChangeClosed = events.ChangeClosed
    StatusRequested = events.StatusRequested
    StatusKept = events.StatusKept
    Suspended = events.Suspended
    Reactivated = events.Reactivated
    StatusSeen = events.StatusSeen
    Installed = events.Installed
    FirstUsed = events.FirstUsed

    requested: events.Requested
    stage: Stage
    iccid: str | None
    sponsor_profile: SponsorProfile | None
    lpa: Sealed | None
    intent: events.EndpointRequested | None
    endpoint_id: str | None
    addon_id: str | None
    activated_at: datetime | None
    failure: events.ProvisioningFailed | None
    status: LinkStatus
    status_intent: events.StatusRequested | None
    activations: dict[UUID, Activation]
    open_change: UUID | None
    installed_at: datetime | None
    first_used_at: datetime | None

    @classmethod
    def request(  # noqa: PLR0913  # An event is whole: each argument is one of its facts.
        cls,
        link_id: UUID,
        cause: Cause,
        *,
        organization_id: UUID,
        name: str | None,
        plan: BoughtPlan,
        sponsor_profiles: Sequence[SponsorProfile],
        currency: str,
        deadline: datetime,
    ) -> Self:
        """Ask for a link; nothing is taken before an eSIM has been found."""
        price = None
        if plan.price_micros:
            price = Price(plan.price_micros, currency, derive_id("transaction", link_id))
        return cls.begin(
            events.Requested,
            cause,
            link_id,
            organization_id=organization_id,
            name=name,
            plan=plan,
            sponsor_profiles=list(sponsor_profiles),
            price=price,
            deadline=deadline,
        )

    @property
    def organization_id(self) -> UUID:
        """Whose link this is."""
        return self.requested.organization_id

    @property
    def attempts(self) -> int:
        """How often the creation of the endpoint has been begun."""
        return self.intent.attempt if self.intent is not None else 0

    @property
    def is_visible(self) -> bool:
        """Tell whether the link exists for its organization."""
        return self.activated_at is not None

    @property
    def current_activations(self) -> list[Activation]:
        """The activations that have not been removed, in order of purchase."""
        return [each for each in self.activations.values() if each.removed_at is None]

    def reserve_esim(
        self, iccid: str, sponsor_profile: SponsorProfile | None, cause: Cause
    ) -> None:
        """Take an eSIM; saved together with its own stream and the charge."""
        assert self.stage is Stage.REQUESTED, self.stage
        self._note(events.EsimReserved, cause, iccid=iccid, sponsor_profile=sponsor_profile)

    def request_endpoint(self, until: datetime, cause: Cause, claim: UUID | None = None) -> None:
        """State the intent before the call: only who appends it may call, until that moment."""
        assert self.stage in {Stage.RESERVED, Stage.ENDPOINT_REQUESTED}, self.stage
        facts = {"attempt": self.attempts + 1, "until": until, "claim": claim}
        self._note(events.EndpointRequested, cause, **facts)

    def activate(
        self, endpoint: Endpoint, lpa: Sealed | None, cause: Cause, *, adopted: bool
    ) -> None:
        """The network has made the endpoint: the link is there, with its first plan."""
        assert self.stage is Stage.ENDPOINT_REQUESTED, self.stage
        assert endpoint.reference == str(self.id), "an endpoint of somebody else"
        made = {"endpoint_id": endpoint.endpoint_id, "addon_id": endpoint.addon_id}
        self._note(events.EndpointCreated, cause, **made, adopted=adopted)
        self._note(
            events.Activated,
            cause,
            **made,
            iccid=self.iccid,
            sponsor_profile=self.sponsor_profile,
            name=self.requested.name,
            plan=self.requested.plan,
            activation_id=derive_id("activation", self.id, 0),
            lpa=lpa,
        )

    def fail(
        self, code: str, details: dict[str, str], settled_at: datetime | None, cause: Cause
    ) -> Repayment | None:
        """Give up; return what the wallet has to give back, in the same commit.

        `settled_at` is when the network can no longer make the endpoint; None when that is known.
        """
        assert self.stage in {Stage.REQUESTED, Stage.RESERVED, Stage.ENDPOINT_REQUESTED}, self.stage
        refund = None
        price = self.requested.price
        if price is not None and self.stage is not Stage.REQUESTED:
            refund = Repayment(price.amount_micros, derive_id("refund", self.id))
        self._note(
            events.ProvisioningFailed,
            cause,
            code=code,
            details=details,
            iccid=self.iccid,
            refund=refund,
            settled_at=settled_at,
        )
        return refund

    def note_endpoint_removed(self, endpoint_id: str, cause: Cause) -> None:
        """A late endpoint of this failed link was found and ended."""
        assert self.stage is Stage.FAILED, self.stage
        self._note(events.EndpointRemoved, cause, endpoint_id=endpoint_id)

    def note_esim_released(self, cause: Cause) -> None:
        """The eSIM is free again; saved together with its own stream."""
        assert self.stage in {Stage.FAILED, Stage.ENDPOINT_REMOVED}, self.stage
        self._note(events.EsimReleased, cause, iccid=self.iccid)

    def store_lpa(self, lpa: Sealed, cause: Cause) -> None:
        """Keep an activation code that was missing."""
        assert self.is_visible
        self._note(events.LpaStored, cause, lpa=lpa)

    def open_plan_change(self, change_id: UUID, cause: Cause) -> None:
        """Begin a change of plans; there is at most one at a time."""
        assert self.is_visible
        assert self.open_change is None, self.open_change
        self._note(events.ChangeOpened, cause, change_id=change_id)

    def add_plan(
        self, activation_id: UUID, plan: BoughtPlan, addon_id: str | None, cause: Cause
    ) -> None:
        """A plan of the open change is on the link now."""
        assert self.open_change is not None
        assert activation_id not in self.activations, activation_id
        facts = {"activation_id": activation_id, "plan": plan, "addon_id": addon_id}
        self._note(events.PlanAdded, cause, change_id=self.open_change, **facts)

    def remove_plan(self, activation_id: UUID, cause: Cause) -> None:
        """A plan of the link has been taken off by the open change."""
        assert self.open_change is not None
        assert self.activations[activation_id].removed_at is None, activation_id
        self._note(
            events.PlanRemoved, cause, change_id=self.open_change, activation_id=activation_id
        )

    def close_plan_change(self, cause: Cause) -> None:
        """End the open change."""
        assert self.open_change is not None
        self._note(events.ChangeClosed, cause, change_id=self.open_change)

    def request_status(self, status: LinkStatus, until: datetime, cause: Cause) -> None:
        """State the intent before the network is told to suspend or resume."""
        assert self.is_visible
        attempt = self.status_intent.attempt + 1 if self.status_intent is not None else 1
        self._note(events.StatusRequested, cause, status=status, attempt=attempt, until=until)

    def settle_status(self, status: LinkStatus, cause: Cause) -> None:
        """Close the intent with the status that the network has now."""
        assert self.status_intent is not None
        if status != self.status_intent.status:
            self._note(events.StatusKept, cause, status=status)
        else:
            done = events.Suspended if status == "suspended" else events.Reactivated
            self._note(done, cause)

    def note_seen(
        self,
        status: LinkStatus,
        installed_at: datetime | None,
        first_used_at: datetime | None,
        cause: Cause,
    ) -> None:
        """Keep what the network shows and the log does not know yet; nothing new, no event."""
        assert self.is_visible
        if status != self.status and self.status_intent is None:
            self._note(events.StatusSeen, cause, status=status)
        if installed_at is not None and self.installed_at is None:
            self._note(events.Installed, cause, installed_at=installed_at)
        if first_used_at is not None and self.first_used_at is None:
            self._note(events.FirstUsed, cause, first_used_at=first_used_at)

    def _note(self, event: type[events.LinkEvent], cause: Cause, **facts: Any) -> None:
        self.record(event, cause, organization_id=self.organization_id, **facts)


def link_id(organization_id: UUID, key: str, attempt: int) -> UUID:
    """Return the stream of one attempt of an idempotent creation.

    An attempt after the first exists only when the one before has failed and kept no money.
    """
    return derive_id("link", organization_id, key, attempt)
