"""Calendar months in UTC, written `YYYY-MM`; text in this form sorts as time does."""

from collections.abc import Iterator
from datetime import UTC, datetime


def first_instant(month: str) -> datetime:
    """Return the moment at which a month begins."""
    year, number = month.split("-")
    return datetime(int(year), int(number), 1, tzinfo=UTC)


def next_month(month: str) -> str:
    """Return the month that follows."""
    year, number = map(int, month.split("-"))
    return f"{year + number // 12:04d}-{number % 12 + 1:02d}"


def months_after(month: str, last: str) -> Iterator[str]:
    """Yield the months after one, up to and with the last, oldest first."""
    while month < last:
        month = next_month(month)
        yield month


def month_of(moment: datetime) -> str:
    """The calendar month (UTC) as `YYYY-MM`: the unit in which personal data is forgotten."""
    return moment.astimezone(UTC).strftime("%Y-%m")
