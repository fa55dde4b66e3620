"""Calendar months in UTC, written `YYYY-MM`; text in this form sorts as time does."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache


def first_instant(month: str) -> datetime:
    year, number = month.split("-")
    return datetime(int(year), int(number), 1, tzinfo=UTC)


@lru_cache(maxsize=128)  # Each entry asks for the month that follows the last closed one.
def next_month(month: str) -> str:
    year, number = map(int, month.split("-"))
    return f"{year + number // 12:04d}-{number % 12 + 1:02d}"


def last_day(month: str) -> date:
    return (first_instant(next_month(month)) - timedelta(days=1)).date()


def months_before(month: str, end: str) -> Iterator[str]:
    """Yield the months from `month` on that begin before `end`."""
    while month < end:
        yield month
        month = next_month(month)


def month_of(moment: datetime) -> str:
    """Return the month (UTC) as `YYYY-MM`; personal data is erased by whole months."""
    utc = moment.astimezone(UTC)
    return _written(utc.year, utc.month)


@lru_cache(maxsize=128)  # Each entry of a wallet asks for it.
def _written(year: int, month: int) -> str:
    return f"{year:04d}-{month:02d}"
