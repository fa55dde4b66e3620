"""One endpoint and what may happen to it: its device, its plans, its end; pure functions.

A device has habits, by seed: its start, its traffic, its pauses. Its traffic uses up its plans one
after the other, and plans expire. A method that changes an endpoint returns a changed copy.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from app.adapters.networks.simulated.identifiers import Identifiers, msisdn_of
from domain.links.network import (
    AddonUsage,
    Endpoint,
    LinkStatus,
    NetworkStatus,
    ProviderPlan,
    ServingNetwork,
    Usage,
)
from domain.provider_errors import Rejected

_MB_DECIMALS = 3  # A kilobyte; stored values are exact.

INSTALLED_S: Final = (30.0, 90.0)  # Counted from the creation of the endpoint.
FIRST_USED_S: Final = (60.0, 180.0)  # Counted likewise; never before the installation.
# The share of its validity after which the first plan is used up.
SHARE_OF_VALIDITY: Final = (0.2, 0.8)
CYCLE_S: Final = (1_200.0, 3_600.0)
# The first part of each cycle; in the rest the device is out of reach.
CONNECTED_SHARE: Final = 0.9


class Habits(Struct, frozen=True):
    """What a device does unless it is stopped; its traffic is steady.

    Its cycles begin with its first use, or anew at `reached_at`.
    """

    installed_at: datetime
    first_used_at: datetime
    mb_per_s: float
    cycle_s: float
    reached_at: datetime | None = None

    def is_connected(self, moment: datetime) -> bool:
        return self._into_cycle_s(moment) < CONNECTED_SHARE * self.cycle_s

    def last_seen(self, moment: datetime) -> datetime:
        """Return when it last had a connection, seen from a moment after its first use."""
        out_of_reach_s = self._into_cycle_s(moment) - CONNECTED_SHARE * self.cycle_s
        return moment - timedelta(seconds=max(0.0, out_of_reach_s))

    def _into_cycle_s(self, moment: datetime) -> float:
        since = self.reached_at or self.first_used_at
        return (moment - since).total_seconds() % self.cycle_s


def habits_of(
    identifiers: Identifiers, endpoint_id: str, plan: ProviderPlan, since: datetime
) -> Habits:
    def choose(bounds: tuple[float, float], purpose: str) -> float:
        low, high = bounds
        return low + (high - low) * identifiers.roll(purpose, endpoint_id)

    installed_s = choose(INSTALLED_S, "installed")
    first_used_s = max(installed_s, choose(FIRST_USED_S, "first used"))
    validity_s = timedelta(days=plan.validity_days).total_seconds()
    return Habits(
        installed_at=since + timedelta(seconds=installed_s),
        first_used_at=since + timedelta(seconds=first_used_s),
        mb_per_s=plan.data_mb / (validity_s * choose(SHARE_OF_VALIDITY, "share of validity")),
        cycle_s=choose(CYCLE_S, "cycle"),
    )


class Addon(Struct, frozen=True):
    """A data plan on an endpoint, in MB; its validity starts when it is first used.

    With an `added_at` in the future it takes effect late, and is not listed yet. A removed plan is
    kept, so that its `reference` does not count as new.
    """

    addon_id: str
    reference: str | None
    provider_plan_id: str
    data_mb: int
    validity_days: int
    added_at: datetime
    started_at: datetime | None = None
    used_mb: float = 0.0
    removed: bool = False
    countries: tuple[str, ...] = ()  # Empty: works anywhere.
    ends_at: datetime | None = None  # If a sandbox ends it before its time.

    @property
    def expires_at(self) -> datetime | None:
        """When it ends even if some of it is left; None until it is first used."""
        validity = timedelta(days=self.validity_days)
        return self.ends_at or (self.started_at and self.started_at + validity)

    def is_listed(self, moment: datetime) -> bool:
        return not self.removed and self.added_at <= moment

    def remaining_mb(self, moment: datetime) -> float:
        return 0.0 if self.has_expired(moment) else self.data_mb - self.used_mb

    def has_expired(self, moment: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= moment


def advance(
    addons: Sequence[Addon], since: datetime, until: datetime, mb_per_s: float
) -> list[Addon]:
    """Return the plans after steady traffic from `since` to `until`, in MB per second.

    They are used one after the other in the given order, which must be that of `added_at`. The next
    one starts when the one before it is used up or has expired.
    """
    assert mb_per_s > 0, mb_per_s
    moment = since
    advanced = []
    for addon in addons:
        used, start = addon, max(moment, addon.added_at)
        if start < until and not addon.removed and addon.remaining_mb(start) > 0:
            used, moment = _use(addon, start, until, mb_per_s)
        advanced.append(used)
    return advanced


def _use(addon: Addon, start: datetime, until: datetime, mb_per_s: float) -> tuple[Addon, datetime]:
    """Use one plan from a moment on; return it and the moment at which it could carry no more."""
    started = replace(addon, started_at=addon.started_at or start)
    assert started.expires_at is not None
    end = min(until, started.expires_at)
    left_mb = addon.data_mb - addon.used_mb
    spent_mb = (end - start).total_seconds() * mb_per_s
    if spent_mb < left_mb:
        used_mb = min(addon.used_mb + spent_mb, float(addon.data_mb))
        return replace(started, used_mb=used_mb), end
    emptied = start + timedelta(seconds=left_mb / mb_per_s)
    used = replace(started, used_mb=float(addon.data_mb))
    return used, min(emptied, end)


class NoPlan(Rejected):
    """Raised where no plan is left that could be used, or none that works in a country."""


class Subscription(Struct, frozen=True):
    """An eSIM in use. Usage is stored as of `meter_at`; later usage is computed when asked for.

    There is no traffic from `stopped_at` on, which is None while the endpoint is active. Stored
    moments are by the network's clock. The field `ahead` is how far that clock was ahead of ours at
    the creation; it may have been moved since. Reports are by our clock; their argument `ahead` is
    how far the network's clock is ahead now.
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
    unreachable: bool = False  # Every read fails.
    ahead: timedelta = timedelta(0)
    roams_in: str | None = None  # The country to which a sandbox has sent it.

    def with_addon(self, addon: Addon) -> Self:
        """Add a plan; it is used after the plans that were there before it."""
        addons = sorted([*self.addons, addon], key=lambda each: each.added_at)
        return replace(self, addons=addons)

    def without_addon(self, addon_id: str, now: datetime) -> Self:
        """Remove a plan with its remaining data; a plan that is not there is no error."""
        settled = self._settled(now)
        addons = [
            replace(addon, removed=True)
            if addon.addon_id == addon_id and addon.is_listed(now)
            else addon
            for addon in settled.addons
        ]
        return replace(settled, addons=addons)

    def stopped(self, status: LinkStatus, now: datetime) -> Self:
        settled = self._settled(now)
        return replace(settled, status=status, stopped_at=self.stopped_at or now)

    def resumed(self, now: datetime) -> Self:
        """Let traffic flow again; if the stop prevented the first use, it happens now."""
        if self.stopped_at is None:
            return self
        habits = self.habits
        if habits.first_used_at > self.stopped_at:
            later = max(habits.first_used_at, now)
            habits = replace(habits, first_used_at=later)
        meter_at = max(self.meter_at, now)
        return replace(self, status="active", stopped_at=None, meter_at=meter_at, habits=habits)

    # What a sandbox lets happen. Nothing that has happened is undone, so each may be repeated.

    def installed(self, now: datetime) -> Self:
        at = min(self.habits.installed_at, now)
        habits = replace(self.habits, installed_at=at)
        return replace(self, habits=habits)

    def used(self, now: datetime, addon_id: str | None, percent: int) -> Self:
        """Use up a part of a plan; None: of the plan in use. Raises NoPlan if it is over."""
        return self._in_use(now, addon_id, lambda it: max(it.used_mb, it.data_mb * percent / 100))

    def ending(self, now: datetime, addon_id: str | None, within: timedelta) -> Self:
        """Let a plan end so soon; None: the plan in use. Nothing happens if it is over."""
        with suppress(NoPlan):
            return self._in_use(now, addon_id, lambda it: it.used_mb, now + within)
        return self

    def roaming(self, now: datetime, country: str, known: Collection[str]) -> Self:
        """Send the device to a country; raises NoPlan if its plan does not work there.

        `known` are the countries that have a network.
        """
        there = self._in_use(now, None, lambda it: it.used_mb)
        covered = there.covered(now)
        if not covered or country not in known or country not in (covered[-1] or known):
            raise NoPlan("the plan in use does not work in this country")
        if self.roams_in == country and there.habits.is_connected(now):
            return there
        habits = replace(there.habits, reached_at=now)
        return replace(there, habits=habits, roams_in=country)

    def _in_use(
        self,
        now: datetime,
        addon_id: str | None,
        used_mb: Callable[[Addon], float],
        ends_at: datetime | None = None,
    ) -> Self:
        """Put a plan to use that has not expired, on a device that is used from now on at least.

        Without an id it is the first that has data left, or else the first. One that was stopped
        has carried this, and no more. Raises NoPlan if there is none.
        """
        settled = self._settled(now)
        valid = [it for it in settled.addons if it.is_listed(now) and not it.has_expired(now)]
        meant = [it for it in valid if addon_id in {None, it.addon_id}]
        if not meant:
            raise NoPlan("the plan is over")
        plan = next((it for it in meant if it.remaining_mb(now) > 0), meant[0])
        started_at, used = plan.started_at or now, used_mb(plan)
        started = replace(plan, started_at=started_at, used_mb=used)
        if ends_at is not None and started.expires_at is not None:
            started = replace(started, ends_at=min(started.expires_at, ends_at))
        addons = [started if it is plan else it for it in settled.addons]
        habits = settled.installed(now).habits
        habits = replace(habits, first_used_at=min(habits.first_used_at, now))
        meter_at, stopped_at = max(settled.meter_at, now), settled.stopped_at and now
        return replace(
            settled, habits=habits, addons=addons, meter_at=meter_at, stopped_at=stopped_at
        )

    def facts(self, now: datetime) -> tuple[object, ...]:
        settled = self._settled(now)
        return settled.habits, settled.addons, settled.status, settled.roams_in

    def addon(self, reference: str) -> Addon | None:
        """Return the plan that was added under a reference, even if it was removed since."""
        return next((addon for addon in self.addons if addon.reference == reference), None)

    def endpoint(self) -> Endpoint:
        return Endpoint(
            endpoint_id=self.endpoint_id,
            iccid=self.iccid,
            reference=self.reference,
            addon_id=self.first_addon_id,
            msisdn=msisdn_of(self.iccid),
        )

    def usage(self, now: datetime, ahead: timedelta) -> Usage:
        habits, addons = self.habits, self._settled(now).addons
        is_installed, is_used = habits.installed_at <= now, self._is_used(now)
        return Usage(
            status=self.status,
            addons=[
                _usage_of(addon, now, self._by_our_clock(addon.expires_at, ahead))
                for addon in addons
                if addon.is_listed(now)
            ],
            as_of=now - ahead,
            installed_at=self._by_our_clock(habits.installed_at, ahead) if is_installed else None,
            first_used_at=self._by_our_clock(habits.first_used_at, ahead) if is_used else None,
            msisdn=msisdn_of(self.iccid),
        )

    def _by_our_clock(self, moment: datetime | None, ahead: timedelta) -> datetime | None:
        """Return a moment by our clock, which is never before the creation of the endpoint."""
        return moment and max(moment - ahead, self.created_at - self.ahead)

    def covered(self, now: datetime) -> list[tuple[str, ...]]:
        """Return the countries of each plan that has started and is still valid."""
        return [
            addon.countries
            for addon in self._settled(now).addons
            if addon.started_at and addon.is_listed(now) and not addon.has_expired(now)
        ]

    def network_status(
        self, network: ServingNetwork | None, now: datetime, ahead: timedelta
    ) -> NetworkStatus:
        """Report whether it is connected, and to which network; without one no plan works."""
        used = self._is_used(now)
        in_reach = network is not None and self.stopped_at is None
        connected = used and in_reach and self.habits.is_connected(now)
        until = self._traffic_until(now) if network is not None else self._plans_until(now)
        return NetworkStatus(
            status=self.status,
            connected=connected,
            network=network if connected else None,
            last_seen_at=self._by_our_clock(self.habits.last_seen(until), ahead) if used else None,
            as_of=now - ahead,
        )

    def _plans_until(self, now: datetime) -> datetime:
        listed = [addon for addon in self._settled(now).addons if addon.is_listed(now)]
        ends = [addon.expires_at for addon in listed if addon.expires_at is not None]
        ended_at = max(ends, default=self.meter_at)
        return max(self.habits.first_used_at, min(ended_at, self._traffic_until(now)))

    def _traffic_until(self, now: datetime) -> datetime:
        return self.stopped_at or now

    def _is_used(self, now: datetime) -> bool:
        return self.habits.first_used_at <= self._traffic_until(now)

    def _settled(self, now: datetime) -> Self:
        """Write down the usage up to now."""
        since = max(self.meter_at, self.habits.first_used_at)
        until = self._traffic_until(now)
        if until <= since:
            return self
        addons = advance(self.addons, since, until, self.habits.mb_per_s)
        return replace(self, addons=addons, meter_at=until)


def create(  # noqa: PLR0913  # Who, what and when.
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
