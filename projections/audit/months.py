"""Checks that the months are closed in their order, each once and not before its end."""

from collections.abc import Iterator
from dataclasses import dataclass

from domain.finance.month import Month
from domain.log.aggregate import Event
from domain.months import first_instant, next_month


@dataclass
class MonthInvariants:
    """Every month that is closed."""

    _last: str | None = None

    def check(self, event: Event) -> Iterator[str]:
        if not isinstance(event, Month.Closed):
            return
        if self._last is not None and event.month != next_month(self._last):
            yield f"month {event.month} is closed after {self._last}"
        if event.timestamp < first_instant(next_month(event.month)):
            yield f"month {event.month} is closed before its end"
        self._last = event.month
