"""Counts changes per day, to limit changes that are free but stay in the log."""

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from domain.errors import RateLimited


class Daily(NamedTuple):
    """A day (UTC), and the number of changes on that day."""

    day: date = date.min
    times: int = 0

    def again(self, at: datetime) -> "Daily":
        """Return the count after one more change at a moment."""
        day = at.astimezone(UTC).date()
        return Daily(day, self.times + 1 if day == self.day else 1)

    def require_less(self, most: int, at: datetime, message: str) -> None:
        """Raise RateLimited, until midnight, if there were `most` changes on the day of `at`."""
        now = at.astimezone(UTC)
        if self.day == now.date() and self.times >= most:
            left = timedelta(days=1) - (now - now.replace(hour=0, minute=0, second=0))
            raise RateLimited(message, retry_after_s=int(left.total_seconds()) + 1)
