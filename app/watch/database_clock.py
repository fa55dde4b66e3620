"""The clock of the database, which all processes use: this machine's clock plus an offset.

The offset is measured, and a metric shows it.
"""

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from threading import Event
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from domain.cause import Clock

MEASURE_S = 60.0
RETRY_S = 5.0  # After a failed measurement; the last offset holds meanwhile.
LOOK_S = 1.0  # How soon a change of this machine's clock is noticed.
SLIP_S = 0.5  # If the wall clock departs further from monotonic time, somebody has set it.
OFF_MAX_S = 1.0  # Beyond this an operator must know.

logger = logging.getLogger(__name__)


class _Measurement(NamedTuple):
    """Both clocks of this machine when the offset was measured, and the offset."""

    wall: datetime
    monotonic_s: float
    offset: timedelta


class DatabaseClock:
    """Tells the database's time: the clock of this machine plus its measured offset.

    So deadlines, leases, heartbeats and sweeps mean the same moments in all processes. SQLite has
    no clock (`ask` returns None), so the offset is 0 there. Reading this clock asks no server.
    """

    def __init__(
        self,
        local: Clock,
        ask: Callable[[], datetime | None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._local = local
        self._ask = ask
        self._monotonic = monotonic
        self._last: _Measurement | None = None  # One value, because many threads read it.
        self._is_confirmed = False  # True while no measurement has failed after the last one.
        self._tried_s: float | None = None
        self._warned = False

    @property
    def offset(self) -> timedelta:
        """Return how far the database's clock is ahead of this machine's, as last measured."""
        return self._last.offset if self._last is not None else timedelta(0)

    def __call__(self) -> datetime:
        """Return the present moment.

        When somebody has set this machine's clock, monotonic time is used until the offset is
        measured again, about a second later. Otherwise tokens would be refused and deadlines would
        pass meanwhile.
        """
        last, now = self._last, self._local()
        if last is None:
            return now
        passed_s = self._monotonic() - last.monotonic_s
        if _slip_s(now - last.wall, passed_s) > SLIP_S:
            now = last.wall + timedelta(seconds=passed_s)
        return now + last.offset

    @property
    def offset_s(self) -> float:
        """How far the database's clock is ahead of this machine's, in seconds."""
        return self.offset.total_seconds()

    def keep(self, stop: Event) -> None:
        """Measure each minute, and at once after a failover or a set clock."""
        while not stop.wait(LOOK_S):
            self.measure_if_due()

    def measure_if_due(self) -> None:
        """Measure if the last measurement no longer holds."""
        since_s = MEASURE_S if self._tried_s is None else self._monotonic() - self._tried_s
        wait_s = MEASURE_S if self._is_confirmed else RETRY_S
        if since_s >= wait_s or self._was_set():
            self.measure()

    def measure(self) -> None:
        """Ask the database for its time; if it does not answer, the last offset holds.

        The server read its clock at some moment between our question and its answer. The offset is
        kept if it is possible under that condition. So on one machine it stays exactly 0.
        """
        before, begun_s = self._local(), self._monotonic()
        self._tried_s = begun_s
        try:
            told = self._ask()
        except Exception as error:  # noqa: BLE001 - Other code reports errors of the database.
            logger.debug("the database could not be asked for its time: %s", type(error).__name__)
            self._is_confirmed = False
            return
        after, ended_s = self._local(), self._monotonic()
        if told is None or _slip_s(after - before, ended_s - begun_s) > SLIP_S:
            return
        least, most = told - after, told - before
        offset = self.offset
        if not least <= offset <= most:
            offset = least + (most - least) / 2
        self._last, self._is_confirmed = _Measurement(after, ended_s, offset), True
        self._say()

    def _was_set(self) -> bool:
        last = self._last
        if last is None or not self._is_confirmed:
            return False
        return _slip_s(self._local() - last.wall, self._monotonic() - last.monotonic_s) > SLIP_S

    def _say(self) -> None:
        is_off = abs(self.offset_s) > OFF_MAX_S
        if is_off and not self._warned:
            logger.warning(
                "the clock of this machine is %.1f s off the database's, which is used instead",
                -self.offset_s,
            )
        elif self._warned and not is_off:
            logger.info("the clock of this machine agrees with the database's again")
        self._warned = is_off


def _slip_s(wall: timedelta, passed_s: float) -> float:
    return abs(wall.total_seconds() - passed_s)


CLOCK_OFFSET = "clock_offset_seconds"


class ClockOffset(Collector):
    """A gauge that shows the last measurement."""

    def __init__(self, clock: Callable[[], DatabaseClock]) -> None:
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Return the gauge without asking anybody."""
        about = "How far the clock of the database is ahead of that of this machine."
        yield GaugeMetricFamily(CLOCK_OFFSET, about, self._clock().offset_s)
