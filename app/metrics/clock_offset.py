"""How far the clock of this machine is off."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.database_clock import DatabaseClock

CLOCK_OFFSET = "clock_offset_seconds"


class ClockOffset(Collector):
    """One gauge, of the last measurement."""

    def __init__(self, clock: DatabaseClock) -> None:
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Tell it without asking anybody."""
        about = "How far the clock of the database is ahead of that of this machine."
        yield GaugeMetricFamily(CLOCK_OFFSET, about, self._clock.offset_s)
