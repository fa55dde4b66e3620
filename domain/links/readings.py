"""The present state of a link: as its network shows it, or as it was last seen.

Also its activation code: asked for once, then kept sealed in the log.
"""

import logging
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from msgspec.structs import replace

from domain.cause import AHEAD_MAX, Cause, Clock
from domain.errors import Conflict, NetworkUnavailable, NotFound, RateLimited, ServiceUnavailable
from domain.links.bought_plan import Activation, match_addons
from domain.links.link import NOTIFIED_PERCENT, Link, LinkState
from domain.links.network import (
    ActivationCode,
    AddonUsage,
    NetworkReading,
    NetworkStatus,
    Readings,
    Usage,
)
from domain.links.networks import Networks
from domain.links.waiting import Limiters
from domain.log.log import Log
from domain.personal import Sealed, Vault, open_text, seal_text
from domain.provider_errors import ProviderError

READ_S = 5.0  # For all network reads of one request together.
ERASED = "The activation code of this link has been erased."
STATUS_FRESH = timedelta(seconds=60)
ENDS_SOON = timedelta(hours=24)  # Partners are notified this long before a plan ends.
LATE = timedelta(hours=24)  # Or so long after it, where nobody could read it before.
# Too many requests wait; then the reply shows what was last seen.
NO_SLOT = (RateLimited, ServiceUnavailable)

logger = logging.getLogger(__name__)


class PlanStage(IntEnum):
    """The stages of a plan on a link, in the order in which they are listed."""

    IN_USE = 1
    WAITING = 2  # Waiting for its first use.
    USED_UP = 3
    EXPIRED = 4


@dataclass(frozen=True, slots=True)
class PlanUsage:
    """One activation and what is left of it, in MB."""

    activation: Activation
    used_mb: float
    remaining_mb: float
    expires_at: datetime | None
    is_expired: bool

    @property
    def percent_used(self) -> float:
        """How much of its data is used up; the network's total may differ from the plan's."""
        total_mb = self.used_mb + self.remaining_mb
        if self.is_expired or not total_mb:  # The rest was lost when it expired.
            total_mb = max(total_mb, self.activation.plan.data_mb)
        return 100 * self.used_mb / total_mb

    @property
    def stage(self) -> PlanStage:
        """The stage of the plan; one in use has data left."""
        if self.is_expired:
            return PlanStage.EXPIRED
        if self.remaining_mb <= 0:
            return PlanStage.USED_UP
        has_started = self.expires_at is not None or self.used_mb > 0
        return PlanStage.IN_USE if has_started else PlanStage.WAITING


@dataclass(frozen=True, slots=True)
class LinkReading:
    """A link with its usage; `stale`: the network was asked and did not answer."""

    link: Link
    usage: Usage | None
    plans: Sequence[PlanUsage]
    name: str | None
    code: ActivationCode | None
    stale: bool
    is_live: bool

    @property
    def status(self) -> LinkState:
        """The status that the network reports now, or the last known one."""
        if self.is_live and self.usage is not None and self.link.ended is None:
            return self.usage.status
        return self.link.state

    @property
    def as_of(self) -> datetime:
        """When the usage was read; for a link that was never read, when it was activated."""
        assert self.link.activated_at is not None
        return self.usage.as_of if self.usage is not None else self.link.activated_at


class StatusReading(NamedTuple):
    """A network status; stale when the network was asked and gave no answer."""

    status: NetworkStatus
    is_stored: bool
    is_stale: bool


@dataclass(frozen=True)
class LinkReadings:
    """Reads links; what the network shows for the first time is recorded in the log.

    With `notifies` the log also gets which shares of plans are used up, and which plans end soon.
    """

    log: Log
    networks: Networks
    readings: Readings
    vault: Vault
    waiting: Limiters
    clock: Clock
    notifies: bool = True

    def read(self, link: Link, cause: Cause, *, live: bool) -> LinkReading:
        """Return a link with its usage: live if asked for and possible, else as last seen.

        The network is not asked about a link that has ended.
        """
        live = live and link.ended is None
        until_s = time.monotonic() + READ_S
        usage = self._live_usage(link, until_s) if live else None
        is_live = usage is not None
        if usage is None:
            usage = self._last(link.id).usage
        else:
            self.readings.save_usage(link.organization_id, link.id, usage)
            link = self._record_seen(link, usage, cause)
        code = self._code(link, until_s, cause)
        return LinkReading(
            link=link,
            usage=usage,
            plans=plans_of(link, usage, self.clock()),
            name=open_text(self.vault, link.organization_id, link.id, link.name),
            code=code,
            stale=live and not is_live,
            is_live=is_live,
        )

    def refresh(self, link: Link, cause: Cause) -> tuple[Link, Usage]:
        """Read a link in the background, without a waiting place; raises what `usage` raises."""
        usage = self.networks.of(link.network).usage(link.endpoint, timeout_s=READ_S)
        self.readings.save_usage(link.organization_id, link.id, usage)
        return self._record_seen(link, usage, cause), usage

    def status(self, link: Link, *, live: bool) -> StatusReading:
        """Return the network status, or the one it gave last.

        `live` asks the network or raises NetworkUnavailable; otherwise a status of the last minute
        will do. The status of an ended link comes from the log and is never stale.
        """
        if link.ended is not None:
            seen = self._last(link.id).status or _never_seen(link)
            over = replace(seen, connected=False, network=None, as_of=link.ended.timestamp)
            return StatusReading(over, is_stored=not live, is_stale=False)
        last = None if live else self._last(link.id).status
        # A stored status that contradicts the log is older than our own change at the network.
        fits = last is not None and last.status == link.status
        if fits and last is not None and abs(self.clock() - last.as_of) <= STATUS_FRESH:
            return StatusReading(last, is_stored=True, is_stale=False)
        network = self.networks.of(link.network)
        try:
            with self.waiting[link.network].slot(link.organization_id):
                status = network.status(link.endpoint, timeout_s=READ_S)
        except (ProviderError, *NO_SLOT) as error:
            if live:
                raise error if isinstance(error, NO_SLOT) else NetworkUnavailable from None
            return StatusReading(last or _never_seen(link), is_stored=True, is_stale=True)
        self.readings.save_status(link.organization_id, link.id, status)
        return StatusReading(status, is_stored=False, is_stale=False)

    def activation_code(self, link: Link, cause: Cause) -> str:
        """Return the LPA string; ask the network for it if it is not stored.

        Raises NotFound if it was erased, NetworkUnavailable if the network does not tell it.
        """
        code = self._code(link, time.monotonic() + READ_S, cause)
        if code is not None:
            return code.lpa
        raise NotFound(ERASED) if link.lpa is not None else NetworkUnavailable

    def open_code(
        self, organization_id: UUID, link_id: UUID, sealed: Sealed | None
    ) -> ActivationCode | None:
        """Return a stored activation code; None if there is none, or if it was erased."""
        text = open_text(self.vault, organization_id, link_id, sealed)
        return None if text is None else ActivationCode.from_text(text)

    def rename(self, link: Link, name: str | None, cause: Cause) -> Link:
        """Give a link another name, or none, and return it; raises RateLimited."""

        def change(newest: Link) -> None:
            owner = newest.organization_id
            if name != open_text(self.vault, owner, newest.id, newest.name):
                newest.rename(seal_text(self.vault, owner, newest.id, name, cause), cause)

        return self.log.update(link, change)

    def _live_usage(self, link: Link, until_s: float) -> Usage | None:
        network = self.networks.of(link.network)
        try:
            # A network that hangs must not hold every thread.
            with self.waiting[link.network].slot(link.organization_id):
                return network.usage(link.endpoint, timeout_s=until_s - time.monotonic())
        except (ProviderError, *NO_SLOT):
            return None

    def _last(self, link_id: UUID) -> NetworkReading:
        return self.readings.load([link_id]).get(link_id, NetworkReading())

    def _record_seen(self, link: Link, usage: Usage, cause: Cause) -> Link:
        """Record what is new; if another writer was first, return the link with its facts."""
        if self.must_wait(link):
            return link
        link.record_seen(usage.status, usage.installed_at, usage.first_used_at, cause)
        if self.notifies:
            record_plans(link, usage, self.clock(), cause)
        if not link.pending_events:
            return link
        try:
            self.log.append(link)
        except Conflict:
            return self.log.get(Link, link.id)
        except ServiceUnavailable:
            logger.warning("what the network showed of link %s could not be recorded", link.id)
        return link

    def must_wait(self, link: Link) -> bool:
        """Tell whether a call that a request has begun may still have an effect.

        Until then nothing is recorded, so that no read comes before the outcome of that call.
        """
        intent = link.open_call
        settles_after, now = self.networks.of(link.network).settles_after, self.clock()
        return intent is not None and now - settles_after < intent.until <= now + AHEAD_MAX

    def _code(self, link: Link, until_s: float, cause: Cause) -> ActivationCode | None:
        """Return the activation code; if it is not stored, ask the network and store it."""
        if link.lpa is not None:
            return self.open_code(link.organization_id, link.id, link.lpa)
        left_s = until_s - time.monotonic()
        if link.iccid is None or link.ended is not None or left_s <= 0:
            return None
        try:
            with self.waiting[link.network].slot(link.organization_id):
                code = self.networks.of(link.network).lpa(link.iccid, timeout_s=left_s)
        except (ProviderError, *NO_SLOT):
            return None
        with suppress(Conflict, ServiceUnavailable):  # The next read will ask again.
            self._store_code(link.id, code, cause)
        return code

    def _store_code(self, link_id: UUID, code: ActivationCode, cause: Cause) -> None:
        """Append to the newest state of the link; what we hold may be ahead of the log."""
        link = self.log.get(Link, link_id)
        if link.lpa is None and link.ended is None and not self.must_wait(link):
            owner, text = link.organization_id, code.as_text()
            sealed = seal_text(self.vault, owner, link.id, text, cause)
            link.record(Link.LpaStored, cause, lpa=sealed)
            self.log.append(link)


def plans_of(link: Link, usage: Usage | None, now: datetime) -> list[PlanUsage]:
    """Return the current activations with what is left of each; expired ones have nothing left."""
    return usage_of(link.current_activations, link.activations.values(), usage, now)


def record_plans(link: Link, usage: Usage | None, now: datetime, cause: Cause) -> datetime | None:
    """Record what is new of the plans; return the next moment at which there will be something.

    That is used-up shares, plans that have an end, end soon or are over. That a plan ends soon is
    not said long after its end. Returns None if no plan has a known end to come. Nothing is
    recorded for a link that has ended.
    """
    if not link.is_live:
        return None
    coming = []
    for plan in plans_of(link, usage, now):
        activation_id, ends_at, over_at = plan.activation.id, plan.expires_at, _over_at(link, plan)
        link.record_used(activation_id, plan.percent_used, cause)
        if ends_at is not None:
            link.record_once(Link.PlanStarted, activation_id, cause, expires_at=ends_at)
            if ends_at - ENDS_SOON <= now < ends_at + LATE:
                link.record_once(Link.ExpiryNear, activation_id, cause, expires_at=ends_at)
        if over_at is not None and over_at <= now:
            link.record_once(Link.PlanEnded, activation_id, cause)
        elif over_at is not None:
            is_near = ends_at is None or (Link.ExpiryNear, activation_id) in link.of_plans
            coming.append(over_at if is_near else over_at - ENDS_SOON)
    return min(coming, default=None)


def _over_at(link: Link, plan: PlanUsage) -> datetime | None:
    """Return from when on a plan is over for certain, as far as that is known.

    A network that does not list a plan may have dropped it after its end, or only left it out. It
    is believed from the earliest moment at which the plan can have ended, or once it was used up.
    """
    if plan.expires_at is not None or not plan.is_expired:
        return plan.expires_at
    bought = plan.activation
    if link.notified_percent(bought.id) >= max(NOTIFIED_PERCENT):
        return bought.bought_at
    earliest = bought.bought_at + timedelta(days=bought.plan.validity_days)
    started = link.of_plans.get((Link.PlanStarted, bought.id))
    return started.expires_at if started is not None else earliest


def usage_of(
    shown: Sequence[Activation], every: Collection[Activation], usage: Usage | None, now: datetime
) -> list[PlanUsage]:
    """Return activations with their usage, by stage, then oldest first.

    `every` activation of the link is needed to match add-ons. Plans in use come first, because many
    readers look only at the first one.
    """
    matched, _ = match_addons(every, usage.addons if usage is not None else [])
    plans = [_plan_usage(each, matched.get(each.id), usage, now) for each in shown]
    return sorted(plans, key=lambda each: (each.stage, each.activation.bought_at))


def _plan_usage(
    activation: Activation, addon: AddonUsage | None, usage: Usage | None, now: datetime
) -> PlanUsage:
    if addon is not None:
        expires_at = addon.expires_at
        is_expired = expires_at is not None and expires_at <= now
        remaining_mb = 0.0 if is_expired else addon.remaining_mb
    else:
        # It was bought after the last reading, or it expired and the network dropped it.
        expires_at = None
        read_since = usage is not None and activation.bought_at < usage.as_of
        is_expired = activation.addon_id is not None and read_since
        remaining_mb = 0.0 if is_expired else float(activation.plan.data_mb)
    return PlanUsage(
        activation=activation,
        used_mb=addon.used_mb if addon is not None else 0.0,
        remaining_mb=remaining_mb,
        expires_at=expires_at,
        is_expired=is_expired,
    )


def _never_seen(link: Link) -> NetworkStatus:
    assert link.activated_at is not None
    return NetworkStatus(
        link.status, connected=False, network=None, last_seen_at=None, as_of=link.activated_at
    )
