"""How long a process has seen its wall clock keep pace with time."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from domain.cause import Clock

SLIP = timedelta(seconds=1)  # What a wall clock may be off without anybody having set it.


class Steadiness:
    """Tells whether so much time has truly passed as the wall clock says.

    A moment on the log is a wall clock's. Whoever must not act before a time has passed since it
    asks here as well: a clock that was set ahead makes a second look like hours. What this process
    has not seen, for it is younger or the clock was set since, it does not believe.
    """

    def __init__(self, clock: Clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._since = self._now()

    def lasts(self, at_least: timedelta) -> bool:
        """Tell whether nobody has set the clock for so long, as this process has seen it."""
        (wall, passed_s), (wall_then, passed_then_s) = self._now(), self._since
        passed = timedelta(seconds=passed_s - passed_then_s)
        if abs((wall - wall_then) - passed) > SLIP:
            self._since = wall, passed_s
            return False
        return passed >= at_least

    def _now(self) -> tuple[datetime, float]:
        return self._clock(), self._monotonic()
