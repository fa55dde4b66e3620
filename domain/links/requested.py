"""The two calls that a request makes: one suspends and reactivates a link, the other ends it."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from domain.accounts.paid_price import GivenBack, PaidPrice
from domain.accounts.wallet import Refund
from domain.cause import Cause
from domain.errors import (
    LATE,
    UNREACHABLE,
    CancelWindowOver,
    Conflict,
    LinkEnded,
    LinkInUse,
    NetworkUnavailable,
    ProvisioningError,
)
from domain.links.bought_plan import BoughtPlan
from domain.links.driver import CALL_S, Commit, Requested, left_s, reason_of
from domain.links.esim import Esim
from domain.links.failing import purchase
from domain.links.link import EndKind, Link
from domain.links.network import LinkStatus, NoSuchEndpoint, Order
from domain.links.plan_change import PlanChange
from domain.provider_errors import ProviderError, Rejected

UNCHANGED = "the link is unchanged"
STATUS_UNCHANGED = "the status is unchanged"
UNSETTLED = "whether it has ended is settled within minutes"

Target = Literal["active", "suspended"]


@dataclass(frozen=True)
class SetStatus(Requested[LinkStatus]):
    """Suspends and reactivates, after reading the status at the network.

    | the network | then |
    |---|---|
    | shows what is wanted | nothing is called |
    | cannot be read now | it is called all the same, but for an open intent |
    | does not show what an open intent wants | the status is kept, once the call is settled |
    """

    opens = Link.StatusRequested

    def run(self, link: Link, target: Target, cause: Cause) -> Link:
        """Bring a link to a status and return it; changes nothing if the network has it already.

        Raises LinkEnded, LinkBusy, NotSupportedByNetwork, and as `request`; the status is unchanged
        then.
        """
        link.require_live()
        self.networks.require(link, "suspend")
        return self.request(link, target, cause)

    def prepare(
        self, link: Link, wanted: Target, until_s: float, cause: Cause
    ) -> tuple[Link, bool]:
        link.require_live()
        if link.open_call is None:
            with suppress(ProviderError):
                link.record_seen(self.look_up(link, left_s(until_s)), None, None, cause)
            if link.pending_events:
                self.log.append(link)
            return link, link.status == wanted
        try:
            link = super().take_over(link, left_s(until_s)) or link
        except ProviderError as error:
            raise ProvisioningError(reason_of(error), STATUS_UNCHANGED) from None
        if self.intent(link) is not None:  # That call may still have an effect.
            raise self.beaten()
        return link, link.status == wanted

    def refusal(self, _link: Link, error: ProviderError | None) -> ProvisioningError | None:
        return ProvisioningError(reason_of(error), STATUS_UNCHANGED) if error is not None else None

    def beaten(self) -> ProvisioningError:
        return ProvisioningError(LATE, STATUS_UNCHANGED)

    def state(self, link: Link, wanted: Target, until: datetime, cause: Cause) -> None:
        link.request_status(wanted, until, cause)

    def call(self, work: Link, timeout_s: float) -> LinkStatus:
        network = self.networks.of(work.network)
        target: LinkStatus = self.intent(work).status
        change = network.suspend if target == "suspended" else network.resume
        change(work.endpoint, timeout_s=timeout_s)
        return target

    def look_up(self, work: Link, timeout_s: float) -> LinkStatus:
        return self.networks.of(work.network).usage(work.endpoint, timeout_s=timeout_s).status

    def take_over(self, work: Link, timeout_s: float = CALL_S) -> Link | None:
        try:
            return super().take_over(work, timeout_s)
        except Rejected:  # There is no endpoint that could still change.
            return self.save(work, None)

    def is_done(self, work: Link, seen: LinkStatus | None) -> bool:
        return bool(seen == self.intent(work).status)

    def settle(self, work: Link, seen: LinkStatus | None, cause: Cause) -> Commit:
        work.settle_status(seen or work.status, cause)
        return [work], []


@dataclass(frozen=True)
class EndLink(Requested[bool]):
    """Ends and cancels links.

    | network | `end` | it has ended when | `cancel` |
    |---|---|---|---|
    | stock | its endpoint is removed | the eSIM does not show it | the same |
    | order that suspends | it is suspended, its plans are removed | it is not active | taken back |
    | order that does not | nothing is called, and there is no intent | | not supported |

    We never sell an eSIM twice, because its activation code is known outside. The exception is an
    eSIM that an order network has taken back: if the network sells it again, that is a new order.
    """

    opens = Link.EndRequested

    cancel_within: timedelta  # Of the activation; zero: nothing is cancelled.

    def end(self, link: Link, cause: Cause) -> Link:
        """End a link for good, without a refund, and return it; does nothing if it has ended.

        Raises LinkBusy while something else is open on the link, and as `Driver.request`.
        """
        return link if link.ended is not None else self.request(link, "end", cause)

    def cancel(self, link: Link, cause: Cause) -> Link:
        """End a link that nobody has used, with a refund; does nothing if it was cancelled.

        Raises as `end`, LinkEnded, NotSupportedByNetwork, CancelWindowOver, LinkInUse, and
        NetworkUnavailable when the network does not tell whether the link was used.
        """
        if link.ended is None:
            self.networks.require(link, "cancel")
            return self.request(link, "cancel", cause)
        if link.ended.reason != "cancelled":
            raise LinkEnded
        return link

    def prepare(
        self, link: Link, wanted: EndKind, until_s: float, cause: Cause
    ) -> tuple[Link, bool]:
        if link.ended is not None:
            return (self.end if wanted == "end" else self.cancel)(link, cause), True
        if wanted == "cancel":
            self._require_unused(link, cause, left_s(until_s))
        elif not self._can_end(link):
            self.commit(link, True, cause)  # noqa: FBT003  # As if the network had shown it.
            return link, True
        return link, False

    def _require_unused(self, link: Link, cause: Cause, timeout_s: float) -> None:
        """Refuse to cancel a link too late, or one that was installed or used."""
        assert link.activated_at is not None
        if cause.at >= link.activated_at + self.cancel_within:
            raise CancelWindowOver
        network, until_s = self.networks.of(link.network), time.monotonic() + timeout_s
        last_seen_at = None
        try:
            seen = network.usage(link.endpoint, timeout_s=timeout_s)
            # A removed plan is no longer listed, so the usage lacks the traffic that it carried.
            if any(each.removed_at for each in link.activations.values()):
                status = network.status(link.endpoint, timeout_s=left_s(until_s))
                last_seen_at = status.last_seen_at
        except ProviderError as error:
            if self.log.get(Link, link.id).version != link.version:  # It may have ended.
                raise Conflict(link.id) from None
            if isinstance(error, Rejected):
                raise ProvisioningError(reason_of(error), UNCHANGED) from None
            raise NetworkUnavailable from None
        link.record_seen(seen.status, seen.installed_at, seen.first_used_at, cause)
        known = (link.installed_at, link.first_used_at, last_seen_at)
        if any(known) or any(each.used_mb for each in seen.addons):
            if link.pending_events:
                self.log.append(link)
            raise LinkInUse

    def _can_end(self, link: Link) -> bool:
        """Tell whether the network can end links; raises ProvisioningError if it is not set up."""
        network = self.networks.of(link.network)
        if not self.networks.is_configured(link.network):
            raise ProvisioningError(UNREACHABLE, UNCHANGED)
        return network.shape == "stock" or "suspend" in network.capabilities

    def refusal(self, link: Link, error: ProviderError | None) -> ProvisioningError | None:
        if error is not None and self.intent(link) is not None:
            return ProvisioningError(LATE, UNSETTLED)
        # Without an error another process may have given the intent up.
        return None if link.ended is not None else ProvisioningError(reason_of(error), UNCHANGED)

    def state(self, link: Link, wanted: EndKind, until: datetime, cause: Cause) -> None:
        link.record(Link.EndRequested, cause, kind=wanted, until=until)

    def call(self, work: Link, timeout_s: float) -> bool:
        network, intent = self.networks.of(work.network), self.intent(work)
        until_s = time.monotonic() + timeout_s
        if network.shape == "stock":
            network.remove_endpoint(work.endpoint, timeout_s=timeout_s)
        elif intent.kind == "end":
            try:
                network.suspend(work.endpoint, timeout_s=timeout_s)
            except Rejected:  # As when it is gone, or was stopped for good.
                if not self.look_up(work, left_s(until_s)):
                    raise
            # Remove all plans that the network lets us remove; the eSIM cannot use the others.
            with suppress(ProviderError):
                for addon in network.usage(work.endpoint, timeout_s=left_s(until_s)).addons:
                    with suppress(Rejected):
                        left = left_s(until_s)
                        network.remove_plan(work.endpoint, addon.addon_id, timeout_s=left)
        # The network may take the eSIM back and keep our money; the partner is refunded anyway.
        elif not (
            network.take_back(_order_of(work), timeout_s=timeout_s) or self.look_up(work, timeout_s)
        ):
            raise Rejected("the network does not take the eSIM back")
        return True

    def look_up(self, work: Link, timeout_s: float) -> bool | None:
        network, until_s = self.networks.of(work.network), time.monotonic() + timeout_s
        assert work.iccid is not None
        if network.shape == "stock":
            found = network.find_endpoint(work.iccid, timeout_s=timeout_s)
            if found is not None and found.endpoint_id == work.endpoint:
                return None
            # A removal can stop halfway: the eSIM is detached, but the endpoint still exists.
            with suppress(Rejected):
                network.remove_endpoint(work.endpoint, timeout_s=left_s(until_s))
            return True
        try:
            seen = network.usage(work.endpoint, timeout_s=timeout_s)
        except NoSuchEndpoint:
            return True
        if self.intent(work).kind == "end":
            return seen.status != "active" or None
        # An eSIM taken back has no plans left. If the link had none before, this proves nothing.
        return (bool(work.current_activations) and not seen.addons) or None

    def settle(self, work: Link, seen: bool | None, cause: Cause) -> Commit:  # noqa: FBT001  # What the network shows.
        """Record the end, with all its refunds, or that the link is kept."""
        if not seen:
            work.record(Link.EndKept, cause)
            return [work], []
        is_cancelled = work.open_call is not None and self.intent(work).kind == "cancel"

        changes = [self.log.get(PlanChange, each) for each in work.changes if is_cancelled]
        topups = [back for change in changes for back in change.give_back(cause)]
        refunds = _refunds(work, changes, work.end(topups, cause))
        moved = [change for change in changes if change.pending_events]
        esims = []
        if is_cancelled and work.order is not None and work.iccid is not None:
            esims.append(self.log.get(Esim, Esim.id_of(work.network, work.iccid)))
            esims[0].release(work.id, cause)
        return [work, *moved, *esims], refunds


def _order_of(link: Link) -> Order:
    """Return the order of a link; for an imported link, one made up from its ICCID."""
    assert link.iccid is not None
    assert link.activated_at is not None
    item, placed = link.requested.plan.provider_plan_id, link.order
    if placed is None:
        return Order(link.iccid, link.iccid, item, link.activated_at)
    return Order(placed.order_reference, placed.iccid, item, placed.placed_at)


def _refunds(
    link: Link, changes: Iterable[PlanChange], given_back: Iterable[GivenBack]
) -> list[Refund]:
    """Return the wallet entries of refunds; each refers to the thing that was charged for."""
    about = dict[UUID, tuple[Link | PlanChange, PaidPrice, BoughtPlan]]()
    if (price := link.requested.price) is not None:
        about[price.transaction_id] = link, price, link.requested.plan
    for change in changes:
        for addition in change.requested.additions:
            if (price := addition.price) is not None:
                about[price.transaction_id] = change, price, addition.plan
    entries = []
    for back in given_back:
        its, price, plan = about[back.charge_id]
        facts = ("Refund of a cancelled link", purchase(link.id, plan))
        entries += its.credit(price, back, "cancelled", *facts)
    return entries
