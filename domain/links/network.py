"""The port of the eSIM network, in the domain's terms; each call says what is safe to repeat.

A network has one of two shapes. From a *stock* an eSIM is taken first, and then its endpoint is
created. An *order* buys an eSIM with its plan on it, so the ICCID comes with the outcome.

Errors are those of `domain.provider_errors`: Unavailable (nothing happened), Rejected (final,
nothing happened) and OutcomeUnknown (look it up before anything is repeated). What one reply says
oddly of one eSIM is NotAnswered or OutcomeNotStated, which are no outage.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, Self, runtime_checkable
from uuid import UUID

import msgspec

from domain.catalogue.supplied import Supplied
from domain.cost import Cost, ProviderBalance
from domain.provider_errors import Rejected

LinkStatus = Literal["active", "suspended", "inactive"]


class NoEndpoint(Rejected):
    """Raised when the network answers a creation without an endpoint id."""


class NoSuchEndpoint(Rejected):
    """Raised when the network does not know an endpoint, or no longer does."""


class NoActivationCode(Rejected):
    """Raised for an eSIM without an activation code, which nobody can install."""


class ProviderPlan(msgspec.Struct, frozen=True):
    """A data plan as the network needs it; `data_mb` in MB, 1 GB = 1000 MB.

    `countries` are where it works (ISO 3166-1 alpha-2), empty for anywhere; a real network knows
    this by itself.
    """

    provider_plan_id: str
    data_mb: int
    validity_days: int
    countries: tuple[str, ...] = ()


# An activation code (GSMA SGP.22 §4.1): the server's name, a token, which may be empty, and perhaps
# the OID of the server and a flag. It is short enough for a QR code of each level of correction.
LPA = re.compile(r"(?=.{1,255}$)LPA:1\$[A-Za-z0-9.-]+\$[0-9A-Za-z-]*(\$[!-~]*)?", re.ASCII)
NO_CODE = "must be LPA:1$host$matching-id, at most 255 characters, without a space, a URL or a port"


class ActivationCode(msgspec.Struct, frozen=True, omit_defaults=True):
    """What installs an eSIM: `lpa` is `LPA:1$host$matching-id` (GSMA SGP.22 §4.1).

    `confirmation_code` is what the phone will ask for, None for nothing. Both are sealed as one
    text, so that they are erased together.
    """

    lpa: str
    confirmation_code: str | None = None

    def as_text(self) -> str:
        """Return it as one text: the LPA string alone, as earlier releases wrote it, or JSON."""
        return msgspec.json.encode(self).decode() if self.confirmation_code else self.lpa

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return what `as_text` wrote; no LPA string begins as JSON does."""
        return msgspec.json.decode(text, type=cls) if text.startswith("{") else cls(text)


class Endpoint(msgspec.Struct, frozen=True):
    """A subscription at the network: an eSIM in use.

    It was created under `reference`. `addon_id` is the id of its first add-on; None if the network
    tells it only through `usage`. `cost` is None if the network does not tell it.
    """

    endpoint_id: str
    iccid: str
    reference: str
    addon_id: str | None = None
    msisdn: str | None = None
    cost: Cost | None = None


class Order(msgspec.Struct, frozen=True):
    """An eSIM that was bought with a plan on it; its ICCID is the id of its endpoint.

    `placed_at` is by the network's clock. `reference` is ours, if the network keeps it.
    """

    order_reference: str
    iccid: str
    provider_plan_id: str
    placed_at: datetime
    reference: str | None = None
    cost: Cost | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What an event says of it."""
        return {name: getattr(self, name) for name in ("order_reference", "iccid", "placed_at")}


class Addon(msgspec.Struct, frozen=True):
    """A plan that was added; `addon_id` is None if the network tells it only through `usage`.

    `others` are further add-ons of the same plan on the endpoint, as far as the call tells them.
    """

    addon_id: str | None
    cost: Cost | None = None
    others: tuple[str, ...] = ()


class AddonUsage(msgspec.Struct, frozen=True):
    """A data plan on an endpoint and what is left of it, in MB (fractional).

    `expires_at` is None until the plan is first used. An expired plan may or may not be listed; a
    removed one is never listed. `order_reference` is what an invoice calls it, if not `addon_id`.
    """

    addon_id: str
    provider_plan_id: str
    used_mb: float
    remaining_mb: float
    expires_at: datetime | None = None
    order_reference: str | None = None


class Usage(msgspec.Struct, frozen=True):
    """What the network knows of an endpoint at `as_of`; None for what it does not know (yet)."""

    status: LinkStatus
    addons: list[AddonUsage]
    as_of: datetime
    installed_at: datetime | None = None
    first_used_at: datetime | None = None
    msisdn: str | None = None


class ServingNetwork(msgspec.Struct, frozen=True):
    """The network that serves a device now; `mcc` and `mnc` are ITU-T E.212 codes.

    `radio` is the generation, such as `4G`. None for what the eSIM's network does not tell.
    """

    country_code: str
    operator: str
    mcc: str | None = None
    mnc: str | None = None
    radio: str | None = None


class NetworkStatus(msgspec.Struct, frozen=True):
    """Whether and where an endpoint is connected at `as_of`."""

    status: LinkStatus
    connected: bool
    network: ServingNetwork | None
    last_seen_at: datetime | None
    as_of: datetime


Shape = Literal["stock", "order"]
Capability = Literal["suspend", "location", "remove_plan", "cancel"]


class Network(Protocol):
    """What both shapes can do. Thread-safe; every call ends within `timeout_s`.

    On a time-out a call that changes something raises OutcomeUnknown, and a read Unavailable.
    `remote`: calls leave this process. We never call what `capabilities` lacks; here it is refused.
    """

    name: str
    remote: bool
    settles_after: timedelta  # From the start of a call until it can no longer have an effect.
    capabilities: frozenset[Capability]
    adds_once: bool  # Whether `add_plan` may be repeated with the same reference.
    # How many usages we read in the background: a quarter of the network's limit, if it is known.
    background_reads_per_s: float

    def probe(self, *, timeout_s: float) -> None:
        """Ask for a sign of life that costs nothing; raises Unavailable while there is none."""

    def balance(self, *, timeout_s: float) -> ProviderBalance | None:
        """Return what we have left at the network, None if it tells none. Raises Unavailable."""
        return None

    def supplied(self, *, timeout_s: float) -> Iterable[Supplied]:
        """Return the plans that the network sells, empty if it has no catalogue.

        A part that cannot be read is an OddEntry and takes nothing else away.
        `timeout_s` is for each call that it makes. Raises Unavailable, also in the middle.
        """
        return ()

    def add_plan(
        self, endpoint_id: str, plan: ProviderPlan, reference: str, *, timeout_s: float
    ) -> Addon:
        """Put one more plan on an endpoint.

        With `adds_once`, repeating it with the same `reference` is safe and gives the same add-on;
        a removed add-on does not come back, however late a call arrives. So a refusal means that
        there is none, once the first call can no longer have an effect. Without `adds_once`, a
        repeat adds another plan. Raises NoEndpoint (the network answered without an add-on id),
        NoSuchEndpoint, Rejected, Unavailable or OutcomeUnknown; after the last, `usage` shows
        within `settles_after` whether there is a new add-on.
        """

    def remove_plan(self, endpoint_id: str, addon_id: str, *, timeout_s: float) -> None:
        """Take a plan off an endpoint; safe to repeat: a plan that is gone is no error."""
        raise Rejected

    def topups(
        self, endpoint_id: str, plans: Sequence[str], *, timeout_s: float
    ) -> Collection[str] | None:
        """Return which of these plans, by their ids here, an endpoint can take besides its own.

        None if the network does not tell. A network that has to be asked for each plan is asked
        for the first ones. Raises Unavailable, Rejected.
        """
        return None

    def usage(self, endpoint_id: str, *, timeout_s: float) -> Usage:
        """Return plans, usage and life cycle of an endpoint now. Raises Unavailable, Rejected."""

    def status(self, endpoint_id: str, *, timeout_s: float) -> NetworkStatus:
        """Return whether an endpoint is connected now. Raises Unavailable, Rejected."""

    def suspend(self, endpoint_id: str, *, timeout_s: float) -> None:
        """Stop the traffic of an endpoint; safe to repeat."""
        raise Rejected

    def resume(self, endpoint_id: str, *, timeout_s: float) -> None:
        """Let a suspended or inactive endpoint carry traffic again; safe to repeat."""
        raise Rejected

    def lpa(self, iccid: str, *, timeout_s: float) -> ActivationCode:
        """Return the activation code of an eSIM. Raises Unavailable, Rejected, NoActivationCode."""


class StockNetwork(Network, Protocol):
    """A network with a stock of eSIMs: one is taken first, then its endpoint is created."""

    shape: Literal["stock"]
    creates_once: bool  # Whether `create_endpoint` may be repeated while a call is under way.

    def available_esims(
        self,
        plan: ProviderPlan,
        sponsor_profile_id: str | None,
        product: str,
        *,
        page: int,
        timeout_s: float,
    ) -> Sequence[str]:
        """Return the ICCIDs (ITU-T E.118) of free eSIMs that can carry a plan, page by page from 0.

        An empty page is the end. `sponsor_profile_id` None means any; `product` "" means any.
        Reserves nothing: two callers may get the same eSIM. Raises Unavailable or Rejected.
        """

    def create_endpoint(
        self, iccid: str, plan: ProviderPlan, base_plan: str, reference: str, *, timeout_s: float
    ) -> Endpoint:
        """Create the active endpoint of an eSIM on a base plan, with a plan as first add-on.

        Repeating it with the same `iccid` and `reference` gives the same endpoint. With
        `creates_once` that holds even while the first call is under way, and once an endpoint was
        removed, no late call creates it again. Raises NoEndpoint, Rejected (also for an eSIM in use
        under another reference), Unavailable or OutcomeUnknown; after the last, ask
        `find_endpoint`.
        """

    def find_endpoint(self, iccid: str, *, timeout_s: float) -> Endpoint | None:
        """Return the endpoint of an eSIM, if it has one now. Raises Unavailable."""

    def remove_endpoint(self, endpoint_id: str, *, timeout_s: float) -> None:
        """Remove an endpoint; safe to repeat: an endpoint that is gone is no error."""

    def release_esim(self, iccid: str, *, timeout_s: float) -> None:
        """Release an eSIM without an endpoint; safe to repeat."""

    def skip_esim(self, iccid: str) -> bool:
        """Stop listing an eSIM as free in this process, because we never sell it again.

        False if the network itself never lists a used eSIM as free. Makes no call.
        """
        return False


class OrderNetwork(Network, Protocol):
    """A network that sells an eSIM and its plan in one order."""

    shape: Literal["order"]
    stores_reference: bool  # Whether `Order.reference` is ours, which identifies a lost order.

    def order(self, plan: ProviderPlan, reference: str, *, timeout_s: float) -> Order:
        """Buy one new eSIM with a plan on it.

        Sent at most once, because repeating it buys another one. Raises Rejected, Unavailable or
        OutcomeUnknown; after the last, `orders` shows whether it was placed.
        """

    def orders(
        self, plan: ProviderPlan, since: datetime, until: datetime, *, timeout_s: float
    ) -> Sequence[Order]:
        """Return the orders of a plan that were placed from `since` to `until`, oldest first.

        These are all that the network shows by now, whoever placed them. It shows an order within
        `settles_after` of the start of its call. Raises Unavailable.
        """

    def take_back(self, order: Order, *, timeout_s: float) -> bool:
        """Give an eSIM that nobody has used back to the network; False if it cannot take it.

        Safe to repeat: True if it was taken back before. Raises Unavailable or OutcomeUnknown.
        """
        return False


EsimNetwork = StockNetwork | OrderNetwork


class Forged(Exception):
    """Raised for a notification that the network has not signed."""


@runtime_checkable
class Notifying(Protocol):
    """A network that sends notifications by itself."""

    name: str

    def notified(self, headers: Mapping[str, str], body: bytes) -> str | None:
        """Return the ICCID that a notification is about, None if it is about none.

        The names of `headers` are in lower case. Raises Forged.
        """


class NetworkReading(msgspec.Struct, frozen=True):
    """What the network last told about a link; None for what it was never asked."""

    usage: Usage | None = None
    status: NetworkStatus | None = None


class Readings(Protocol):
    """The last usage and status of each link, shared by processes; losing one costs a network read.

    An older reading never replaces a newer one.
    """

    def load(self, link_ids: Collection[UUID]) -> Mapping[UUID, NetworkReading]:
        """Return what was last seen of these links; links never seen are left out."""

    def save_usage(self, organization_id: UUID, link_id: UUID, usage: Usage) -> None:
        """Store a usage if it is newer."""

    def save_status(self, organization_id: UUID, link_id: UUID, status: NetworkStatus) -> None:
        """Store a status if it is newer."""
