"""What is left of each plan, and whether a device is connected: live, stored or stale."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from domain.links.bought_plan import Activation, BoughtPlan
from domain.links.link import Link
from domain.links.network import AddonUsage, NetworkStatus, Usage
from domain.links.readings import STATUS_FRESH, PlanUsage, StatusReading, usage_of
from domain.provider_errors import Unavailable
from tests.domain.buying import Buyer
from tests.domain.conftest import clocked_buyer
from tests.installation import wait_until

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def activation(
    addon_id: str | None = "ad-1", *, bought_at: datetime = NOW - 60 * SECOND, plan: str = "eu"
) -> Activation:
    bought = BoughtPlan(uuid4(), plan, "Europe", 0, 1_000, 7, ["DE"])
    return Activation(uuid4(), bought, bought_at, addon_id)


def addon(
    addon_id: str = "ad-1",
    used_mb: float = 400.5,
    expires_at: datetime | None = None,
    plan: str = "eu",
) -> AddonUsage:
    return AddonUsage(addon_id, plan, used_mb, 1_000 - used_mb, expires_at)


def usage(*addons: AddonUsage, as_of: datetime = NOW) -> Usage:
    return Usage("active", [*addons], as_of)


def one(shown: Activation, seen: Usage | None, now: datetime = NOW) -> PlanUsage:
    [found] = usage_of([shown], [shown], seen, now)
    assert found.activation is shown
    return found


def figures(found: PlanUsage) -> tuple[float, float, bool]:
    return found.used_mb, found.remaining_mb, found.is_expired


@pytest.mark.parametrize(
    ("bought", "seen", "expected"),
    [
        pytest.param({}, [addon(expires_at=NOW + SECOND)], (400.5, 599.5, False), id="in use"),
        pytest.param({}, [addon(expires_at=NOW)], (400.5, 0.0, True), id="just expired"),
        pytest.param({}, [addon(expires_at=NOW - SECOND)], (400.5, 0.0, True), id="expired"),
        pytest.param({}, [], (0.0, 0.0, True), id="not listed any more"),
        pytest.param(
            {"addon_id": "ad-2", "bought_at": NOW}, [addon()], (0.0, 1_000.0, False), id="new"
        ),
        pytest.param(
            {"addon_id": None}, [addon(plan="asia")], (0.0, 1_000.0, False), id="never known"
        ),
    ],
)
def test_a_plan_has_what_the_network_says_of_its_add_on(
    bought: dict[str, Any], seen: list[AddonUsage], expected: tuple[float, float, bool]
) -> None:
    found = one(activation(**bought), usage(*seen))
    assert figures(found) == expected
    assert found.expires_at == next((each.expires_at for each in seen), None)


def shown(every: Sequence[Activation], seen: Usage) -> dict[UUID, float]:
    current = [each for each in every if each.removed_at is None]
    return {each.activation.id: each.used_mb for each in usage_of(current, every, seen, NOW)}


def test_plans_without_a_known_add_on_get_theirs_in_order_of_purchase() -> None:
    second, first = activation(None), activation(None, bought_at=NOW - 90 * SECOND)
    seen = usage(addon("ad-7", 7.0), addon("ad-1", 1.0), addon("ad-8", 8.0))
    known = activation("ad-1")
    assert shown([second, known, first], seen) == {second.id: 8.0, known.id: 1.0, first.id: 7.0}


def test_what_is_left_of_a_removed_plan_is_nobody_elses() -> None:
    removed, unknown = activation("ad-1"), activation(None)
    removed.removed_at = NOW
    seen = usage(addon("ad-1", 1.0), addon("ad-2", 2.0))
    assert shown([removed, unknown], seen) == {unknown.id: 2.0}
    assert shown([removed, unknown], usage(addon("ad-1", 1.0))) == {unknown.id: 0.0}


buyer = clocked_buyer


@pytest.fixture
def link(buyer: Buyer) -> Link:
    made = buyer.own()
    wait_until(lambda: buyer.process.readings.load([made.id]) != {})
    buyer.time.forward(hours=1)
    return made


def ask(buyer: Buyer, link: Link, *, live: bool = False) -> StatusReading:
    return buyer.process.link_readings.status(buyer.link(link.id), live=live)


def now_at_network(buyer: Buyer, link: Link) -> NetworkStatus:
    return buyer.simulator.status(link.endpoint_id, timeout_s=1.0)


def test_a_status_is_asked_for_once_in_a_minute(buyer: Buyer, link: Link) -> None:
    first = now_at_network(buyer, link)
    assert ask(buyer, link) == (first, False, False)
    buyer.time.forward(seconds=STATUS_FRESH.total_seconds())
    assert ask(buyer, link) == (first, True, False)
    buyer.time.now += timedelta(microseconds=1)
    assert ask(buyer, link) == (now_at_network(buyer, link), False, False)
    assert buyer.network.count("status") == 2
    assert now_at_network(buyer, link).as_of == buyer.time()


def test_a_link_that_the_network_never_told_of_has_the_status_of_the_log(
    buyer: Buyer, link: Link
) -> None:
    buyer.network.before("status", Unavailable("down"))
    status, cached, stale = ask(buyer, link)
    assert (status.status, status.connected, status.network) == ("active", False, None)
    assert (status.last_seen_at, status.as_of) == (None, link.activated_at)
    assert (cached, stale) == (True, True)
    assert ask(buyer, link)[1:] == (False, False)  # It was not kept as if it had been seen.


def test_a_status_from_before_a_clock_was_set_back_is_not_fresh_for_ever(
    buyer: Buyer, link: Link
) -> None:
    ask(buyer, link)
    buyer.time.forward(hours=-1)
    assert ask(buyer, link)[1:] == (False, False)


def test_what_is_in_use_comes_first_then_what_waits_what_is_used_up_and_what_expired() -> None:
    """The oldest plan of all is often used up, and many readers show only the first."""
    end = NOW + 60 * SECOND
    bought = [activation(f"ad-{age}", bought_at=NOW - age * SECOND) for age in range(6, 0, -1)]
    seen = usage(
        addon("ad-6", 1_000.0, end),  # Used up.
        addon("ad-5", 5.0, NOW),  # Expired.
        addon("ad-4", 0.0),  # Waiting, and so is the next one.
        addon("ad-3", 0.0),
        addon("ad-2", 2.0, end),
        addon("ad-1", 1.0),  # Of a network that does not tell when it ends.
    )
    ordered = [each.activation.addon_id for each in usage_of(bought[::-1], bought, seen, NOW)]
    assert ordered == ["ad-2", "ad-1", "ad-4", "ad-3", "ad-6", "ad-5"]
