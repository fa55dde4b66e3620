"""Moments and months are in UTC."""

from datetime import UTC, datetime, timedelta, timezone

from domain.cause import utc_now
from domain.months import month_of


def test_the_month_is_that_of_utc() -> None:
    ahead = timezone(timedelta(hours=2))
    assert month_of(datetime(2026, 3, 1, 1, 30, tzinfo=ahead)) == "2026-02"
    assert month_of(datetime(2026, 3, 1, 0, 0, tzinfo=UTC)) == "2026-03"


def test_now_is_aware_and_in_utc() -> None:
    assert utc_now().tzinfo is UTC
