"""The facts of a link, and what each changes in it."""

from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

from domain.activation import Activation, BoughtPlan
from domain.aggregate import Created, Root
from domain.network import LinkStatus
from domain.plan import SponsorProfile
from domain.ports import Sealed
from domain.price import Price, Repayment

if TYPE_CHECKING:
    from domain.link import Link


class Stage(StrEnum):
    """How far the provisioning of a link has come."""

    REQUESTED = "requested"
    RESERVED = "reserved"
    ENDPOINT_REQUESTED = "endpoint_requested"
    ACTIVE = "active"
    FAILED = "failed"  # The money is back; an eSIM that it holds is still to be cleaned up.
    ENDPOINT_REMOVED = "endpoint_removed"
    ENDED = "ended"


class LinkEvent(Root.Event):
    """Every fact of a link names its organization."""

    organization_id: UUID


class Requested(LinkEvent, Created):
    """`price` is None for a plan that costs nothing; `sponsor_profiles` are tried in order."""

    TOPIC = "link.requested"
    IS_STEP = True

    name: str | None
    plan: BoughtPlan
    sponsor_profiles: list[SponsorProfile]
    price: Price | None
    deadline: datetime

    def apply(self, aggregate: "Link") -> None:
        aggregate.requested = self
        aggregate.stage = Stage.REQUESTED
        aggregate.iccid = aggregate.sponsor_profile = aggregate.lpa = None
        aggregate.intent = aggregate.endpoint_id = aggregate.addon_id = None
        aggregate.activated_at = aggregate.failure = None
        aggregate.status = "inactive"
        aggregate.status_intent = None
        aggregate.activations = {}
        aggregate.open_change = None
        aggregate.installed_at = aggregate.first_used_at = None


class EsimReserved(LinkEvent):
    """An eSIM was found and paid for: saved together with its stream and the charge."""

    TOPIC = "link.esim_reserved"
    IS_STEP = True

    iccid: str
    sponsor_profile: SponsorProfile | None

    def apply(self, aggregate: "Link") -> None:
        aggregate.stage = Stage.RESERVED
        aggregate.iccid = self.iccid
        aggregate.sponsor_profile = self.sponsor_profile


class EndpointRequested(LinkEvent):
    """An intent: whoever appended it calls the network and is done with it at `until`.

    `claim` is random: two who state the same at the same moment do not state the same bytes, so
    what looks like the echo of one's own commit is that. None in what was written before it.
    """

    TOPIC = "link.endpoint_requested"
    IS_STEP = True

    attempt: int
    until: datetime
    claim: UUID | None = field(default=None, kw_only=True)

    def apply(self, aggregate: "Link") -> None:
        aggregate.stage = Stage.ENDPOINT_REQUESTED
        aggregate.intent = self


class EndpointCreated(LinkEvent):
    """`adopted` when the reply had been lost and the endpoint was found by its reference."""

    TOPIC = "link.endpoint_created"

    endpoint_id: str
    addon_id: str | None
    adopted: bool

    def apply(self, aggregate: "Link") -> None:
        aggregate.endpoint_id = self.endpoint_id
        aggregate.addon_id = self.addon_id


class Activated(LinkEvent):
    """The link as it begins, whole, so that whoever reads it needs no earlier fact."""

    TOPIC = "link.activated"

    endpoint_id: str
    addon_id: str | None
    iccid: str
    sponsor_profile: SponsorProfile | None
    name: str | None
    plan: BoughtPlan
    activation_id: UUID
    lpa: Sealed | None

    def apply(self, aggregate: "Link") -> None:
        aggregate.stage = Stage.ACTIVE
        aggregate.status = "active"
        aggregate.activated_at = self.timestamp
        aggregate.lpa = self.lpa
        aggregate.activations[self.activation_id] = Activation(
            self.activation_id, self.plan, self.timestamp, self.addon_id
        )


class ProvisioningFailed(LinkEvent):
    """`iccid` is the eSIM that is still to be freed, `settled_at` when at the latest it can be."""

    TOPIC = "link.provisioning_failed"

    code: str
    details: dict[str, str]
    iccid: str | None
    refund: Repayment | None
    settled_at: datetime | None

    def apply(self, aggregate: "Link") -> None:
        aggregate.stage = Stage.FAILED if self.iccid is not None else Stage.ENDED
        aggregate.failure = self


class EndpointRemoved(LinkEvent):
    """A late endpoint of a failed link was found and ended."""

    TOPIC = "link.endpoint_removed"

    endpoint_id: str

    def apply(self, aggregate: "Link") -> None:
        aggregate.stage = Stage.ENDPOINT_REMOVED


class EsimReleased(LinkEvent):
    """The eSIM of a failed link is free for others."""

    TOPIC = "link.esim_released"

    iccid: str

    def apply(self, aggregate: "Link") -> None:
        aggregate.stage = Stage.ENDED


class LpaStored(LinkEvent):
    """The activation code of the eSIM, sealed; it was missing at the activation."""

    TOPIC = "link.lpa_stored"

    lpa: Sealed

    def apply(self, aggregate: "Link") -> None:
        aggregate.lpa = self.lpa


class ChangeOpened(LinkEvent):
    """A change of plans has begun; there is at most one at a time."""

    TOPIC = "link.change_opened"

    change_id: UUID

    def apply(self, aggregate: "Link") -> None:
        aggregate.open_change = self.change_id


class PlanAdded(LinkEvent):
    """A top-up is on the link."""

    TOPIC = "link.plan_added"

    change_id: UUID
    activation_id: UUID
    plan: BoughtPlan
    addon_id: str | None

    def apply(self, aggregate: "Link") -> None:
        aggregate.activations[self.activation_id] = Activation(
            self.activation_id, self.plan, self.timestamp, self.addon_id
        )


class PlanRemoved(LinkEvent):
    """A plan was taken off."""

    TOPIC = "link.plan_removed"

    change_id: UUID
    activation_id: UUID

    def apply(self, aggregate: "Link") -> None:
        aggregate.activations[self.activation_id].removed_at = self.timestamp


class ChangeClosed(LinkEvent):
    """The change of plans is over, whatever came of it."""

    TOPIC = "link.change_closed"

    change_id: UUID

    def apply(self, aggregate: "Link") -> None:
        aggregate.open_change = None


class StatusRequested(LinkEvent):
    """An intent: whoever appended it tells the network, and is done with it at `until`."""

    TOPIC = "link.status_requested"
    IS_STEP = True

    status: LinkStatus
    attempt: int
    until: datetime

    def apply(self, aggregate: "Link") -> None:
        aggregate.status_intent = self


class StatusKept(LinkEvent):
    """The network did not do what was intended; `status` is what it has instead."""

    TOPIC = "link.status_kept"

    status: LinkStatus

    def apply(self, aggregate: "Link") -> None:
        aggregate.status = self.status
        aggregate.status_intent = None


class Suspended(LinkEvent):
    """The network has stopped the traffic, as intended."""

    TOPIC = "link.suspended"

    def apply(self, aggregate: "Link") -> None:
        aggregate.status = "suspended"
        aggregate.status_intent = None


class Reactivated(LinkEvent):
    """The network lets traffic through again, as intended."""

    TOPIC = "link.reactivated"

    def apply(self, aggregate: "Link") -> None:
        aggregate.status = "active"
        aggregate.status_intent = None


class StatusSeen(LinkEvent):
    """The network showed another status than the log had."""

    TOPIC = "link.status_seen"

    status: LinkStatus

    def apply(self, aggregate: "Link") -> None:
        aggregate.status = self.status


class Installed(LinkEvent):
    """The network has seen the eSIM in a device for the first time."""

    TOPIC = "link.installed"

    installed_at: datetime

    def apply(self, aggregate: "Link") -> None:
        aggregate.installed_at = self.installed_at


class FirstUsed(LinkEvent):
    """The network has carried its first traffic."""

    TOPIC = "link.first_used"

    first_used_at: datetime

    def apply(self, aggregate: "Link") -> None:
        aggregate.first_used_at = self.first_used_at
