"""Time is the database's: what the clock of this machine is off is measured, and added.

How far the clock of this machine is off.
"""

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from threading import Event

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from domain.cause import Clock

MEASURE_S = 60.0
RETRY_S = 5.0  # After a measurement that failed; the last one holds meanwhile.
LOOK_S = 1.0  # How soon it is noticed that somebody has set the clock of this machine.
SLIP_S = 0.5  # What a wall clock may be off monotonic time without anybody having set it.
OFF_MAX_S = 1.0  # Beyond it an operator has to know.

logger = logging.getLogger(__name__)


class DatabaseClock:
    """Tells the database's time: this machine's clock and its offset, in which hosts differ.

    Deadlines, leases, heartbeats and sweeps of all processes so mean the same moments. A file has
    no clock (`ask` returns None), then the offset is 0. Telling the time asks nobody.
    """

    def __init__(
        self,
        local: Clock,
        ask: Callable[[], datetime | None],
        monotonic: Callable[[], float] = time.monotonic,
        server: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._local = local
        self._ask = ask
        self._monotonic = monotonic
        self._server = server  # Another one has another clock.
        self._asked_of: str | None = None
        self._measured: tuple[datetime, float] | None = None
        # Both clocks when the offset was found; one value, for many threads tell the time.
        self._found: tuple[datetime, float, timedelta] | None = None
        self._tried_s: float | None = None
        self._warned = False

    @property
    def offset(self) -> timedelta:
        """How far the database's clock is ahead of this machine's, as last measured."""
        return self._found[2] if self._found is not None else timedelta(0)

    def __call__(self) -> datetime:
        """Return the present moment.

        When somebody has set this machine's clock, monotonic time goes on until the offset is
        measured again: else tokens would be refused and deadlines pass in that second.
        """
        found, now = self._found, self._local()
        if found is None:
            return now
        wall, then_s, offset = found
        passed = timedelta(seconds=self._monotonic() - then_s)
        if abs((now - wall - passed).total_seconds()) > SLIP_S:
            now = wall + passed
        return now + offset

    @property
    def offset_s(self) -> float:
        """How far the database's clock is ahead of this machine's."""
        return self.offset.total_seconds()

    def keep(self, stop: Event) -> None:
        """Measure each minute, and at once after a failover or a set clock of this machine."""
        while not stop.wait(LOOK_S):
            self.measure_if_due()

    def measure_if_due(self) -> None:
        """Measure when the last measurement holds no more."""
        since_s = MEASURE_S if self._tried_s is None else self._monotonic() - self._tried_s
        wait_s = MEASURE_S if self._measured is not None else RETRY_S
        if since_s >= wait_s or self._was_set() or self._is_another():
            self.measure()

    def measure(self) -> None:
        """Ask the database; where it does not answer the last offset holds.

        The offset is kept as long as the answer does not refute it: the server looked at its clock
        between our question and its answer. So on one machine it is exactly 0.
        """
        before, begun_s = self._local(), self._monotonic()
        self._tried_s, self._asked_of = begun_s, self._server()
        try:
            told = self._ask()
        except Exception as error:  # noqa: BLE001 - whatever it is: others say what a database lacks.
            logger.debug("the clock of the database was not told: %s", type(error).__name__)
            self._measured = None
            return
        after, ended_s = self._local(), self._monotonic()
        if told is None or _slip_s(after - before, ended_s - begun_s) > SLIP_S:
            return
        least, most = told - after, told - before
        offset = self.offset
        if not least <= offset <= most:
            offset = least + (most - least) / 2
        self._found = after, ended_s, offset
        self._measured = after, ended_s
        self._say()

    def _is_another(self) -> bool:
        return self._server() != self._asked_of

    def _was_set(self) -> bool:
        if self._measured is None:
            return False
        wall, passed_s = self._measured
        return _slip_s(self._local() - wall, self._monotonic() - passed_s) > SLIP_S

    def _say(self) -> None:
        is_off = abs(self.offset_s) > OFF_MAX_S
        if is_off and not self._warned:
            logger.warning(
                "the clock of this machine is %.1f s off that of the database, which counts",
                -self.offset_s,
            )
        elif self._warned and not is_off:
            logger.info("the clock of this machine is that of the database again")
        self._warned = is_off


def _slip_s(wall: timedelta, passed_s: float) -> float:
    return abs(wall.total_seconds() - passed_s)


CLOCK_OFFSET = "clock_offset_seconds"


class ClockOffset(Collector):
    """One gauge, of the last measurement."""

    def __init__(self, clock: DatabaseClock) -> None:
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Tell it without asking anybody."""
        about = "How far the clock of the database is ahead of that of this machine."
        yield GaugeMetricFamily(CLOCK_OFFSET, about, self._clock.offset_s)
