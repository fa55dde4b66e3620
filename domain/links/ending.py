"""The commands that end or cancel a link, and how an unfinished one of them is settled.

| network | `end` | it has ended when | `cancel` |
|---|---|---|---|
| stock | its endpoint is removed | the eSIM does not show it | the same |
| order that suspends | it is suspended, its plans are removed | it is not active | taken back |
| order that does not | nothing is called, and there is no intent | | not supported |

We never sell an eSIM twice, because its activation code is known outside. The exception is an eSIM
that an order network has taken back: if the network sells it again, that is a new order.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from domain.accounts.committer import Committer
from domain.accounts.paid_price import GivenBack, PaidPrice
from domain.accounts.wallet import Refund
from domain.cause import Cause, Clock
from domain.errors import (
    LATE,
    REJECTED,
    UNREACHABLE,
    CancelWindowOver,
    Conflict,
    LinkBusy,
    LinkEnded,
    LinkInUse,
    NetworkUnavailable,
    ProvisioningError,
)
from domain.links.bought_plan import BoughtPlan
from domain.links.esim import Esim, esim_id
from domain.links.failing import purchase
from domain.links.link import EndKind, Link
from domain.links.network import EsimNetwork, NoSuchEndpoint, Order
from domain.links.networks import Networks
from domain.links.plan_change import PlanChange
from domain.links.waiting import Places, wait_for
from domain.log.log import Log
from domain.provider_errors import OutcomeUnknown, ProviderError, Rejected, Unavailable

CALL_S = 5.0  # For all calls of one step, and for waiting until the link is free.
WITHIN_S = 4 * CALL_S  # For a whole request: it waits, looks, calls, and looks again.
UNCHANGED = "the link is unchanged"
UNSETTLED = "whether it has ended is settled within minutes"


@dataclass(frozen=True)
class LinkEnding:
    """Ends and cancels links; only the process that wrote the intent calls the network."""

    log: Log
    committer: Committer
    networks: Networks
    waiting: Places
    cancel_within: timedelta  # Of the activation; zero: nothing is cancelled.
    clock: Clock

    def end(self, link: Link, cause: Cause) -> Link:
        """End a link for good, without a refund, and return it; does nothing if it has ended.

        Raises ProvisioningError when the network fails, LinkBusy while something else is open on
        the link, and RateLimited or ServiceUnavailable when too many requests wait for the network.
        """
        return link if link.ended is not None else self._run(link, "end", cause)

    def cancel(self, link: Link, cause: Cause) -> Link:
        """End a link that nobody has used, with a refund; does nothing if it was cancelled.

        Raises as `end`, LinkEnded, NotSupportedByNetwork, CancelWindowOver, LinkInUse, and
        NetworkUnavailable when the network does not tell whether the link was used.
        """
        if link.ended is None:
            self.networks.require(link, "cancel")
            return self._run(link, "cancel", cause)
        if link.ended.reason != "cancelled":
            raise LinkEnded
        return link

    def settle(self, link: Link, *, settled: bool) -> None:
        """Close an intent that its request left open, according to what the network shows.

        `settled`: the call can no longer have an effect. Raises ProviderError if the network does
        not tell, and Conflict.
        """
        assert link.end_intent is not None
        cause = self._settling(link.end_intent)
        if self._has_ended(link, CALL_S):
            self._finish(link, cause)
        elif settled:
            link.record(Link.EndKept, cause)
            self.log.append(link)

    def _settling(self, intent: Link.EndRequested) -> Cause:
        return Cause(self.clock(), intent.request_id, intent.actor)

    def _run(self, link: Link, kind: EndKind, cause: Cause) -> Link:
        with self.waiting[link.network].slot(link.organization_id):
            until_s = time.monotonic() + WITHIN_S
            return self.log.change(
                link, lambda newest: self._try(newest, kind, until_s, cause), LinkBusy()
            )

    def _try(self, link: Link, kind: EndKind, until_s: float, cause: Cause) -> Link:
        if not _is_free(link):
            link = wait_for(self.log, link, _is_free, time.monotonic() + _left_s(until_s))
        if link.ended is not None:
            return self.end(link, cause) if kind == "end" else self.cancel(link, cause)
        if not _is_free(link):
            raise LinkBusy
        cause = replace(cause, at=self.clock())  # It may have waited for its turn.
        if kind == "cancel":
            self._require_unused(link, cause, _left_s(until_s))
        elif not self._can_end(link):
            self._finish(link, cause)
            return link
        if (left_s := _left_s(until_s)) < CALL_S:  # Others have kept changing the link.
            raise LinkBusy
        until = self.clock() + timedelta(seconds=left_s)
        link.record(Link.EndRequested, cause, kind=kind, until=until)
        self.log.claim(link)
        return self._tell(link, until_s)

    def _require_unused(self, link: Link, cause: Cause, timeout_s: float) -> None:
        """Refuse to cancel a link too late, or one that was installed or used."""
        assert link.activated_at is not None
        assert link.endpoint_id is not None
        if cause.at >= link.activated_at + self.cancel_within:
            raise CancelWindowOver
        network, until_s = self.networks.of(link.network), time.monotonic() + timeout_s
        last_seen_at = None
        try:
            seen = network.usage(link.endpoint_id, timeout_s=timeout_s)
            # A removed plan is no longer listed, so the usage lacks the traffic that it carried.
            if any(each.removed_at for each in link.activations.values()):
                left_s = _left_s(until_s)
                last_seen_at = network.status(link.endpoint_id, timeout_s=left_s).last_seen_at
        except ProviderError as error:
            if self.log.get(Link, link.id).version != link.version:  # Others may have ended it.
                raise Conflict(link.id) from None
            if isinstance(error, Rejected):
                raise ProvisioningError(REJECTED, UNCHANGED) from None
            raise NetworkUnavailable from None
        link.note_seen(seen.status, seen.installed_at, seen.first_used_at, cause)
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

    def _tell(self, link: Link, until_s: float) -> Link:
        """Call the network once, and close our intent with the outcome."""
        intent = link.end_intent
        assert intent is not None
        left_s = (intent.until - self.clock()).total_seconds()
        try:
            if left_s <= 0:  # The append took longer than the intent lasts.
                raise Unavailable
            self._call(link, left_s)
        except OutcomeUnknown:
            if not self._shows_end(link, until_s):
                raise ProvisioningError(LATE, UNSETTLED) from None
        except ProviderError as error:
            self._close(link, ended=False)
            reason = REJECTED if isinstance(error, Rejected) else UNREACHABLE
            raise ProvisioningError(reason, UNCHANGED) from None
        return self._close(link, ended=True)

    def _call(self, link: Link, timeout_s: float) -> None:
        """Carry out the intent at the network; raises Rejected if the network did not do it."""
        network, intent = self.networks.of(link.network), link.end_intent
        assert link.endpoint_id is not None
        assert intent is not None
        if network.shape == "stock":
            network.remove_endpoint(link.endpoint_id, timeout_s=timeout_s)
        elif intent.kind == "end":
            until_s = time.monotonic() + timeout_s
            try:
                network.suspend(link.endpoint_id, timeout_s=timeout_s)
            except Rejected:  # As when it is gone, or was stopped for good.
                if not self._has_ended(link, _left_s(until_s)):
                    raise
            _strip(network, link.endpoint_id, until_s)
        # The network may take the eSIM back and keep our money; the partner is refunded anyway.
        elif not (
            network.take_back(_order_of(link), timeout_s=timeout_s)
            or self._has_ended(link, timeout_s)
        ):
            message = "the network does not take the eSIM back"
            raise Rejected(message)

    def _shows_end(self, link: Link, until_s: float) -> bool:
        try:
            return self._has_ended(link, _left_s(until_s))
        except ProviderError:
            return False

    def _has_ended(self, link: Link, timeout_s: float) -> bool:
        """Ask the network whether it has done what was intended."""
        network, until_s = self.networks.of(link.network), time.monotonic() + timeout_s
        assert link.endpoint_id is not None
        assert link.end_intent is not None
        assert link.iccid is not None
        if network.shape == "stock":
            found = network.find_endpoint(link.iccid, timeout_s=timeout_s)
            if found is not None and found.endpoint_id == link.endpoint_id:
                return False
            # A removal can stop halfway: the eSIM is detached, but the endpoint still exists.
            with suppress(Rejected):
                network.remove_endpoint(link.endpoint_id, timeout_s=_left_s(until_s))
            return True
        try:
            seen = network.usage(link.endpoint_id, timeout_s=timeout_s)
        except NoSuchEndpoint:
            return True
        if link.end_intent.kind == "end":
            return seen.status != "active"
        # An eSIM taken back has no plans left. If the link had none before, this proves nothing.
        return bool(link.current_activations) and not seen.addons

    def _close(self, link: Link, *, ended: bool) -> Link:
        """Close our intent on the newest version of the link, unless it is closed already."""
        intent = link.end_intent
        assert intent is not None

        def close(newest: Link) -> None:
            cause = self._settling(intent)
            if newest.end_intent == intent and ended:
                self._finish(newest, cause)
            elif newest.end_intent == intent:
                newest.record(Link.EndKept, cause)

        closed = self.log.update(link, close)
        if ended and closed.ended is None:  # Another process has given the intent up.
            raise ProvisioningError(LATE, UNCHANGED)
        return closed

    def _finish(self, link: Link, cause: Cause) -> None:
        """Append the end and all its refunds in one commit; raises Conflict."""
        is_cancelled = link.end_intent is not None and link.end_intent.kind == "cancel"
        changes = [self.log.get(PlanChange, each) for each in link.changes if is_cancelled]
        topups = [back for change in changes for back in change.give_back(cause)]
        refunds = _refunds(link, changes, link.end(topups, cause))
        moved = [change for change in changes if change.pending_events]
        esims = []
        if is_cancelled and link.order is not None and link.iccid is not None:
            esims.append(self.log.get(Esim, esim_id(link.network, link.iccid)))
            esims[0].release(link.id, cause)
        self.committer.commit_entries(link.organization_id, refunds, cause, link, *moved, *esims)


def _is_free(link: Link) -> bool:
    open_now = (link.open_change, link.status_intent, link.end_intent)
    return link.ended is not None or not any(open_now)


def _left_s(until_s: float) -> float:
    return max(0.0, min(CALL_S, until_s - time.monotonic()))


def _strip(network: EsimNetwork, endpoint_id: str, until_s: float) -> None:
    """Remove all plans that the network lets us remove; the eSIM cannot use the others."""
    with suppress(ProviderError):
        for addon in network.usage(endpoint_id, timeout_s=_left_s(until_s)).addons:
            with suppress(Rejected):
                network.remove_plan(endpoint_id, addon.addon_id, timeout_s=_left_s(until_s))


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
        entries.append(its.credit(price, back, "cancelled", *facts))
    return entries
