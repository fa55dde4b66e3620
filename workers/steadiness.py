"""For how long a process has seen its wall clock keep pace with real time."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from domain.cause import Clock

SLIP = timedelta(seconds=1)  # How far a wall clock may drift before it counts as set.


class Steadiness:
    """Tells whether as much time has really passed as the wall clock says.

    Moments in the log are wall-clock times. If the clock was set ahead, a second looks like hours.
    So a process that must wait until a time has passed asks here as well. Only time counts that
    this process itself has run, without anybody setting the clock.
    """

    def __init__(self, clock: Clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._since = self._now()

    def lasts(self, at_least: timedelta) -> bool:
        """Tell whether this process has run for `at_least`, and nobody set the clock meanwhile."""
        (wall, passed_s), (wall_then, passed_then_s) = self._now(), self._since
        passed = timedelta(seconds=passed_s - passed_then_s)
        if abs((wall - wall_then) - passed) > SLIP:
            self._since = wall, passed_s
            return False
        return passed >= at_least

    def _now(self) -> tuple[datetime, float]:
        return self._clock(), self._monotonic()
