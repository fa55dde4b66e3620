"""The arithmetic of usage: data is never used twice, too early, or beyond what is left."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.adapters.networks.simulated.subscription import Addon, advance

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ROUNDING_MB = 1e-3
moments = st.timedeltas(timedelta(0), timedelta(days=60)).map(lambda passed: START + passed)
rates = st.floats(min_value=1e-4, max_value=10)


@st.composite
def purchases(draw: st.DrawFn) -> list[Addon]:
    """Draw plans that nobody has used, in the order in which they were bought."""
    bought = sorted(draw(st.lists(moments, min_size=1, max_size=5)))
    return [
        an_addon(
            f"ad-{number}",
            added_at=moment,
            data_mb=draw(st.integers(1, 20_000)),
            validity_days=draw(st.integers(1, 20)),
            removed=draw(st.integers(0, 4)) == 0,
        )
        for number, moment in enumerate(bought)
    ]


def an_addon(addon_id: str = "ad-0", added_at: datetime = START, **its: Any) -> Addon:
    named = {"addon_id": addon_id, "reference": addon_id, "provider_plan_id": "plan"}
    facts = {"data_mb": 1_000, "validity_days": 7, "removed": False, **its}
    return Addon(added_at=added_at, **named, **facts)


def used(addons: Sequence[Addon]) -> list[float]:
    return [addon.used_mb for addon in addons]


@given(purchases(), moments, moments, rates)
def test_nothing_is_used_beyond_the_data_the_time_or_the_rate(
    addons: list[Addon], since: datetime, until: datetime, mb_per_s: float
) -> None:
    after = advance(addons, since, until, mb_per_s)
    for addon in after:
        assert 0 <= addon.used_mb <= addon.data_mb
        assert 0 <= addon.remaining_mb(until) <= addon.data_mb - addon.used_mb
    seconds = max(0.0, (until - since).total_seconds())
    assert sum(used(after)) <= seconds * mb_per_s + ROUNDING_MB


def test_plans_are_used_in_order_and_expire_by_their_own_start() -> None:
    """At 100 MB an hour: the first is empty after 10 hours, the second expires after 24 more."""
    bought = [
        an_addon("first"),
        an_addon("second", data_mb=5_000, validity_days=1),
        an_addon("third", added_at=START + 2 * DAY),
    ]

    def at(passed: timedelta) -> list[Addon]:
        return advance(bought, START, START + passed, 100 / 3_600)

    assert used(at(5 * HOUR)) == pytest.approx([500, 0, 0])
    assert [each.expires_at for each in at(5 * HOUR)] == [START + 7 * DAY, None, None]
    assert used(at(11 * HOUR)) == pytest.approx([1_000, 100, 0])
    assert at(11 * HOUR)[1].expires_at == START + 10 * HOUR + DAY
    assert used(at(47 * HOUR)) == pytest.approx([1_000, 2_400, 0])
    assert at(34 * HOUR)[1].remaining_mb(START + 34 * HOUR) == 0
    assert used(at(49 * HOUR)) == pytest.approx([1_000, 2_400, 100])
    assert at(49 * HOUR)[2].started_at == START + 48 * HOUR


def test_a_plan_that_is_used_up_leaves_none_over() -> None:
    (addon,) = advance([an_addon(data_mb=7)], START, START + DAY, 0.3)
    assert addon.used_mb == 7
    assert addon.remaining_mb(START + DAY) == 0
    assert advance([addon], START + DAY, START + 2 * DAY, 0.3) == [addon]


def test_a_listed_plan_is_there_and_was_not_removed() -> None:
    addon = an_addon(added_at=START + HOUR)
    assert [addon.is_listed(START), addon.is_listed(START + HOUR)] == [False, True]
    removed = msgspec.structs.replace(addon, removed=True)
    assert not removed.is_listed(START + HOUR)
