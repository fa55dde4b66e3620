"""One endpoint and what may happen to it; pure functions that return a changed copy."""

from datetime import datetime, timedelta
from typing import Self

import msgspec

from app.adapters.networks.simulated.device import Habits, habits_of
from app.adapters.networks.simulated.identifiers import Identifiers, msisdn_of
from app.adapters.networks.simulated.meter import Addon, advance
from domain.links.network import (
    AddonUsage,
    Endpoint,
    LinkStatus,
    NetworkStatus,
    ProviderPlan,
    ServingNetwork,
    Usage,
)

_MB_DECIMALS = 3  # A kilobyte; stored values are exact.


class Subscription(msgspec.Struct, frozen=True):
    """An eSIM in use. Usage is stored as of `meter_at`; later usage is computed when asked for.

    There is no traffic from `stopped_at` on; it is None while the endpoint is active. Its moments
    are by the network's clock, which was `ahead` of everybody's when it was created, and may have
    been moved since. What it reports is by everybody's: the `ahead` of a report is the present one.
    """

    endpoint_id: str
    iccid: str
    reference: str
    first_addon_id: str
    created_at: datetime
    habits: Habits
    addons: list[Addon]
    meter_at: datetime
    status: LinkStatus = "active"
    stopped_at: datetime | None = None
    unreachable: bool = False
    ahead: timedelta = timedelta(0)

    def with_addon(self, addon: Addon) -> Self:
        """Add a plan; it is used after the plans that were there before it."""
        addons = sorted([*self.addons, addon], key=lambda each: each.added_at)
        return msgspec.structs.replace(self, addons=addons)

    def without_addon(self, addon_id: str, now: datetime) -> Self:
        """Remove a plan with what is left of it; one that is not there is no error."""
        settled = self._settled(now)
        addons = [
            msgspec.structs.replace(addon, removed=True)
            if addon.addon_id == addon_id and addon.is_listed(now)
            else addon
            for addon in settled.addons
        ]
        return msgspec.structs.replace(settled, addons=addons)

    def cut_off(self) -> Self:
        """Make it unreadable, so that every read of it fails."""
        return msgspec.structs.replace(self, unreachable=True)

    def stopped(self, status: LinkStatus, now: datetime) -> Self:
        """Stop its traffic; its plans still expire."""
        settled = self._settled(now)
        return msgspec.structs.replace(settled, status=status, stopped_at=self.stopped_at or now)

    def resumed(self, now: datetime) -> Self:
        """Let traffic flow again; a first use that was prevented happens now."""
        if self.stopped_at is None:
            return self
        habits = self.habits
        if habits.first_used_at > self.stopped_at:
            later = max(habits.first_used_at, now)
            habits = msgspec.structs.replace(habits, first_used_at=later)
        return msgspec.structs.replace(
            self,
            status="active",
            stopped_at=None,
            meter_at=max(self.meter_at, now),
            habits=habits,
        )

    def addon(self, reference: str) -> Addon | None:
        """Return what was added under a reference, even if it was removed since."""
        return next((addon for addon in self.addons if addon.reference == reference), None)

    def endpoint(self) -> Endpoint:
        """Return it as the port describes an endpoint."""
        return Endpoint(
            endpoint_id=self.endpoint_id,
            iccid=self.iccid,
            reference=self.reference,
            addon_id=self.first_addon_id,
            msisdn=msisdn_of(self.iccid),
        )

    def usage(self, now: datetime, ahead: timedelta) -> Usage:
        """Report plans, usage and life cycle."""
        habits, addons = self.habits, self._settled(now).addons
        is_installed, is_used = habits.installed_at <= now, self._is_used(now)
        return Usage(
            status=self.status,
            addons=[
                _usage_of(addon, now, self._told(addon.expires_at, ahead))
                for addon in addons
                if addon.is_listed(now)
            ],
            as_of=now - ahead,
            installed_at=self._told(habits.installed_at, ahead) if is_installed else None,
            first_used_at=self._told(habits.first_used_at, ahead) if is_used else None,
            msisdn=msisdn_of(self.iccid),
        )

    def _told(self, moment: datetime | None, ahead: timedelta) -> datetime | None:
        """Return a moment by everybody's clock; nothing was before the endpoint."""
        return moment and max(moment - ahead, self.created_at - self.ahead)

    def covered(self, now: datetime) -> list[tuple[str, ...]]:
        """Return where the plans work that it has begun to use, without those that are over."""
        return [
            addon.countries
            for addon in self._settled(now).addons
            if addon.started_at and addon.is_listed(now) and not addon.has_expired(now)
        ]

    def network_status(
        self, network: ServingNetwork | None, now: datetime, ahead: timedelta
    ) -> NetworkStatus:
        """Report whether it is connected, and if so to this network; None: no plan works."""
        used = self._is_used(now)
        in_reach = network is not None and self.stopped_at is None
        connected = used and in_reach and self.habits.is_connected(now)
        until = self._traffic_until(now) if network is not None else self._plans_until(now)
        return NetworkStatus(
            status=self.status,
            connected=connected,
            network=network if connected else None,
            last_seen_at=self._told(self.habits.last_seen(until), ahead) if used else None,
            as_of=now - ahead,
        )

    def _plans_until(self, now: datetime) -> datetime:
        """Return until when its last plan worked: until its end or its removal."""
        listed = [addon for addon in self._settled(now).addons if addon.is_listed(now)]
        ends = [addon.expires_at for addon in listed if addon.expires_at is not None]
        ended_at = max(ends, default=self.meter_at)
        return max(self.habits.first_used_at, min(ended_at, self._traffic_until(now)))

    def _traffic_until(self, now: datetime) -> datetime:
        return self.stopped_at or now

    def _is_used(self, now: datetime) -> bool:
        return self.habits.first_used_at <= self._traffic_until(now)

    def _settled(self, now: datetime) -> Self:
        """Write down the usage up to now; if the clock was set back, nothing changes."""
        since = max(self.meter_at, self.habits.first_used_at)
        until = self._traffic_until(now)
        if until <= since:
            return self
        addons = advance(self.addons, since, until, self.habits.mb_per_s)
        return msgspec.structs.replace(self, addons=addons, meter_at=until)


def begin(  # noqa: PLR0913  # Who, what and when.
    identifiers: Identifiers,
    iccid: str,
    reference: str,
    plan: ProviderPlan,
    since: datetime,
    ahead: timedelta,
) -> Subscription:
    """Return the endpoint, with its plan, of an eSIM; it comes into being at `since`."""
    endpoint_id = identifiers.endpoint_id(iccid, reference)
    first = addon_of(identifiers, endpoint_id, None, plan, since)
    return Subscription(
        endpoint_id=endpoint_id,
        iccid=iccid,
        reference=reference,
        first_addon_id=first.addon_id,
        created_at=since,
        habits=habits_of(identifiers, endpoint_id, plan, since),
        addons=[first],
        meter_at=since,
        ahead=ahead,
    )


def addon_of(
    identifiers: Identifiers,
    endpoint_id: str,
    reference: str | None,
    plan: ProviderPlan,
    since: datetime,
) -> Addon:
    """Return a plan on an endpoint; `reference` is None for the first plan, which came with it."""
    return Addon(
        addon_id=identifiers.addon_id(endpoint_id, reference),
        reference=reference,
        provider_plan_id=plan.provider_plan_id,
        data_mb=plan.data_mb,
        validity_days=plan.validity_days,
        added_at=since,
        countries=plan.countries,
    )


def _usage_of(addon: Addon, now: datetime, expires_at: datetime | None) -> AddonUsage:
    used_mb = round(addon.used_mb, _MB_DECIMALS)
    left_mb = addon.data_mb - used_mb if addon.remaining_mb(now) else 0.0  # None once it expired.
    return AddonUsage(
        addon_id=addon.addon_id,
        provider_plan_id=addon.provider_plan_id,
        used_mb=used_mb,
        remaining_mb=round(left_mb, _MB_DECIMALS),
        expires_at=expires_at,
    )
