"""What a sandbox lets happen to an endpoint: reads show it, nothing is undone, traffic goes on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection

from app.adapters.networks.simulated.identifiers import Identifiers
from app.adapters.networks.simulated.network import NETWORKS, Owner, SimulatedNetwork
from app.adapters.networks.simulated.subscription import NoPlan, Subscription, addon_of, create
from domain.links.network import Endpoint, NetworkStatus, ProviderPlan, Usage
from tests.contracts.esim_networks import TIMEOUT_S, SimulatedSide

MINE = UUID("00000000-0000-4000-8000-000000000001")
PLAN = ProviderPlan("eu-1gb-7d", data_mb=1_000, validity_days=7, countries=("FR", "DE"))
HOUR = timedelta(hours=1)
Change = Callable[[Subscription, datetime], Subscription]


class Owned:
    """A network whose links belong to somebody, and how far the time of each of these is ahead."""

    def __init__(self, side: SimulatedSide) -> None:
        self.clock, self._database = side.clock, side.database()
        self.ahead: dict[UUID | None, timedelta] = {}
        self.owners: dict[str, UUID] = {}  # By ICCID.
        theirs: Any = {"ahead": self._ahead, "owner_of": self._owner_of}
        its = (self._database, side.clock, "seed")
        self.network = SimulatedNetwork(*its, sandbox=True, wait=id, **theirs)

    def _owner_of(self, iccid: str) -> Owner:
        return (self.owners[iccid],) if iccid in self.owners else ()

    def _ahead(self, owner: Owner, _: Connection) -> timedelta:
        return self.ahead.get(owner[0] if owner else None, timedelta(0))

    def create(self, plan: ProviderPlan = PLAN) -> Endpoint:
        [iccid, *_] = self.network.available_esims(plan, None, "", page=0, timeout_s=TIMEOUT_S)
        self.owners[iccid] = MINE
        given = (iccid, plan, "base", f"link-{iccid}")
        return self.network.create_endpoint(*given, timeout_s=TIMEOUT_S)

    def play(self, made: Endpoint, change: Change) -> Usage:
        self.network.play(made.endpoint_id, change)
        return self.usage(made)

    def usage(self, made: Endpoint) -> Usage:
        return self.network.usage(made.endpoint_id, timeout_s=TIMEOUT_S)

    def status(self, made: Endpoint) -> NetworkStatus:
        return self.network.status(made.endpoint_id, timeout_s=TIMEOUT_S)


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[Owned]:
    side = SimulatedSide(tmp_path)
    yield Owned(side)
    side.close()


def use(percent: int, addon_id: str | None = None) -> Change:
    return lambda it, now: it.used(now, addon_id, percent)


def end(within: timedelta, addon_id: str | None = None) -> Change:
    return lambda it, now: it.ending(now, addon_id, within)


def roam(country: str) -> Change:
    return lambda it, now: it.roaming(now, country, NETWORKS)


def test_a_plan_whose_end_was_passed_has_expired_and_not_before_it_was_bought(owned: Owned) -> None:
    made = owned.create()
    owned.ahead = {MINE: timedelta(days=PLAN.validity_days + 30)}
    usage = owned.usage(made)
    [addon] = usage.addons
    assert (addon.remaining_mb, addon.expires_at) == (0.0, owned.clock.now)
    assert usage.as_of == owned.clock.now


def test_what_is_made_afterwards_begins_as_ever(owned: Owned) -> None:
    owned.ahead = {MINE: 240 * HOUR}
    made, created_at = owned.create(), owned.clock()
    fresh = owned.usage(made)
    assert (fresh.installed_at, fresh.addons[0].used_mb) == (None, 0.0)
    owned.clock.now += HOUR
    usage = owned.usage(made)
    assert usage.installed_at is not None
    assert timedelta(seconds=30) <= usage.installed_at - created_at <= timedelta(seconds=90)
    assert usage.addons[0].expires_at is not None
    validity = timedelta(days=PLAN.validity_days)
    assert usage.addons[0].expires_at - validity - created_at <= timedelta(seconds=180)


def test_a_plan_is_used_to_a_part_and_its_traffic_goes_on(owned: Owned) -> None:
    made = owned.create()
    seen = owned.play(made, use(80))
    assert (seen.addons[0].used_mb, seen.first_used_at) == (800, owned.clock.now)
    assert seen.addons[0].expires_at == owned.clock.now + timedelta(days=7)
    assert owned.play(made, use(50)).addons[0].used_mb == 800, "nothing is given back"
    owned.clock.forward(seconds=3_600)
    later = owned.usage(made).addons[0].used_mb
    assert 800 < later < 1_000
    assert owned.play(made, use(80)).addons[0].used_mb == later


def test_of_several_plans_the_one_in_use_is_meant_unless_one_is_named(owned: Owned) -> None:
    made = owned.create()
    second = owned.network.add_plan(made.endpoint_id, PLAN, "second", timeout_s=TIMEOUT_S)
    assert [each.used_mb for each in owned.play(made, use(100)).addons] == [1_000, 0]
    assert [each.used_mb for each in owned.play(made, use(10)).addons] == [1_000, 100]
    named = owned.play(made, use(100, made.addon_id))
    assert [each.used_mb for each in named.addons] == [1_000, 100], "it may be repeated"
    ended = owned.play(made, end(timedelta(0), second.addon_id))
    assert [each.remaining_mb for each in ended.addons] == [0, 0]
    owned.play(made, end(timedelta(0)))  # The first, which was used up.
    with pytest.raises(NoPlan):
        owned.play(made, use(100))


def test_a_device_roams_where_its_plan_works_and_is_connected_there(owned: Owned) -> None:
    made = owned.create()
    for country in ("DE", "FR", "DE", "DE"):
        owned.play(made, roam(country))
        seen = owned.status(made)
        assert seen.connected
        assert seen.network == NETWORKS[country]
        while owned.status(made).connected:
            owned.clock.forward(seconds=60)
    with pytest.raises(NoPlan):
        owned.play(made, roam("US"))
    anywhere = owned.create(plan=ProviderPlan("w", data_mb=1_000, validity_days=7))
    owned.play(anywhere, roam("US"))
    assert owned.status(anywhere).network == NETWORKS["US"]
    with pytest.raises(NoPlan):
        owned.play(anywhere, roam("XX"))


def test_a_device_that_has_roamed_travels_where_its_next_plan_works(owned: Owned) -> None:
    made = owned.create()
    owned.play(made, roam("DE"))
    there = ProviderPlan("us", data_mb=1_000, validity_days=7, countries=("US",))
    owned.network.add_plan(made.endpoint_id, there, "second", timeout_s=TIMEOUT_S)
    owned.play(made, use(100))
    owned.play(made, roam("US"))
    assert owned.status(made).network == NETWORKS["US"]


@pytest.mark.parametrize("status", ["suspended", "inactive"])
def test_what_the_network_stops_carries_no_traffic_until_it_is_resumed(
    owned: Owned, status: Literal["suspended", "inactive"]
) -> None:
    made = owned.create()
    owned.play(made, use(10))
    owned.play(made, lambda it, now: it.stopped(status, now))
    owned.clock.forward(seconds=3_600)
    stopped = owned.usage(made)
    assert (stopped.status, stopped.addons[0].used_mb) == (status, 100)
    assert not owned.status(made).connected
    assert owned.play(made, use(20)).addons[0].used_mb == 200, "a late record of its traffic"
    owned.network.resume(made.endpoint_id, timeout_s=TIMEOUT_S)
    owned.clock.forward(seconds=3_600)
    assert owned.usage(made).addons[0].used_mb > 200
    other = owned.create()
    owned.play(other, lambda it, now: it.stopped(status, now))  # Before its first use.
    owned.clock.forward(seconds=1)
    seen = owned.play(other, use(10))
    assert (seen.addons[0].used_mb, seen.first_used_at is not None) == (100, True)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("use"), st.integers(1, 100)),
        st.tuples(st.just("end"), st.integers(0, 400)),
        st.tuples(st.just("wait"), st.integers(0, 400)),
        st.tuples(st.sampled_from(["install", "roam", "suspend", "resume"]), st.just(0)),
    ),
    max_size=12,
)


def _play(it: Subscription, now: datetime, action: str, number: int) -> Subscription:
    match action:
        case "use":
            return it.used(now, None, number)
        case "end":
            return it.ending(now, None, number * HOUR)
        case "install":
            return it.installed(now)
        case "suspend":
            return it.stopped("suspended", now)
        case "resume":
            return it.resumed(now)
    return it.roaming(now, "FR", NETWORKS)


@given(steps)
def test_nothing_that_happened_is_undone_whatever_is_played(
    played: Sequence[tuple[str, int]],
) -> None:
    now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    made = create(Identifiers("seed"), "8988399900000000011", "link", PLAN, now, timedelta(0))
    made = made.with_addon(addon_of(Identifiers("seed"), made.endpoint_id, "two", PLAN, now))
    before = made.usage(now, timedelta(0))
    for action, number in played:
        now += number * HOUR if action == "wait" else timedelta(seconds=1)
        with suppress(NoPlan):
            made = _play(made, now, action, number) if action != "wait" else made
        seen = made.usage(now, timedelta(0))
        for old, new in zip(before.addons, seen.addons, strict=True):
            assert old.used_mb <= new.used_mb <= PLAN.data_mb
            assert new.remaining_mb <= old.remaining_mb
            assert old.expires_at is None or (new.expires_at or now) <= old.expires_at
        for old_at, new_at in (
            (before.installed_at, seen.installed_at),
            (before.first_used_at, seen.first_used_at),
        ):
            assert old_at in {None, new_at}
        if seen.first_used_at is not None:
            assert seen.installed_at is not None
            assert seen.installed_at <= seen.first_used_at <= now
        before = seen
