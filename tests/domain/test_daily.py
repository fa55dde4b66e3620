"""What is free is done only so often a day."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from domain.daily import Daily
from domain.errors import RateLimited

NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)


def test_a_bound_lasts_until_midnight() -> None:
    done = Daily().again(NOON).again(NOON)
    done.require_less(3, NOON, "Often.")
    done.require_less(2, NOON + timedelta(hours=12), "Often.")
    with pytest.raises(RateLimited, match=r"Often\.") as refused:
        done.require_less(2, NOON, "Often.")
    assert refused.value.retry_after_s == 12 * 3600 + 1


def test_the_day_is_that_of_utc_and_counts_anew() -> None:
    late = datetime(2026, 4, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    assert Daily().again(NOON).again(late).times == 2
    assert Daily().again(NOON).again(NOON + timedelta(days=1)).times == 1
