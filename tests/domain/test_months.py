"""Months of the calendar, in UTC wherever the clock of whoever asks may stand."""

from datetime import datetime, timedelta, timezone

import pytest

from domain.months import first_instant, last_day, month_of, months_before, next_month

INSTANT = timedelta(microseconds=1)


DAYS = {"2026-01": 31, "2026-02": 28, "2024-02": 29, "2000-02": 29, "2100-02": 28}
DAYS |= {"2026-03": 31, "2026-09": 30, "2026-12": 31}


@pytest.mark.parametrize("month", DAYS)
def test_a_month_ends_where_the_next_one_begins(month: str) -> None:
    first, after = first_instant(month), first_instant(next_month(month))
    assert (after - first).days == last_day(month).day == DAYS[month]
    assert month_of(first) == month_of(after - INSTANT) == month
    assert month_of(after) == next_month(month)


def test_a_moment_of_another_time_zone_counts_in_utc() -> None:
    east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-11))
    assert month_of(datetime(2026, 3, 1, 13, 59, tzinfo=east)) == "2026-02"
    assert month_of(datetime(2026, 2, 28, 13, 0, tzinfo=west)) == "2026-03"


def test_the_months_before_one_come_oldest_first_and_exclude_it() -> None:
    assert list(months_before("2025-11", "2026-02")) == ["2025-11", "2025-12", "2026-01"]
    for end in ("2026-02", "2026-01", "2025-12"):
        assert list(months_before("2026-02", end)) == []
