"""Compares this machine's clock with the database's; a process whose clock is wrong does no work.

Nothing is corrected, because hosts keep time by NTP.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event
from typing import NamedTuple

from domain.cause import CLOCK_OFF_MAX, Clock
from domain.errors import ClockOff

CHECK_S = 10.0
LOOK_S = 1.0  # How soon a clock that was set is compared.
SLIP_S = 0.5  # If the wall clock departs further from monotonic time, somebody has set it.
OFF_MAX_S = CLOCK_OFF_MAX.total_seconds()
WAS_SET = "the clock of this machine was set and is being compared with the database's"

logger = logging.getLogger(__name__)


class _Comparison(NamedTuple):
    """Both clocks of this machine at a comparison, and how far the database's was ahead."""

    wall: datetime
    monotonic_s: float
    off_s: float


@dataclass(eq=False)
class ClockCheck:
    """Tells why this machine's clock must not be believed, as of the last comparison.

    SQLite has no clock of its own (`ask` returns None), so there the clock is never wrong. While
    the database does not answer, the last comparison counts.
    """

    local: Clock
    ask: Callable[[], datetime | None]
    monotonic: Callable[[], float] = time.monotonic
    # One value, because many threads read it.
    _last: _Comparison | None = field(default=None, init=False)
    _due_s: float | None = field(default=None, init=False)
    _said: str | None = field(default=None, init=False)

    @property
    def off_s(self) -> float:
        """How far the database's clock is ahead of this machine's, in seconds."""
        return self._last.off_s if self._last is not None else 0.0

    def reason(self) -> str | None:
        """Say why the clock must not be believed; None if it may. This asks nobody.

        A clock that somebody sets is doubted from that moment on until it is compared.
        """
        off_s = self.off_s
        if not -OFF_MAX_S <= off_s <= OFF_MAX_S:
            how = "behind" if off_s > 0 else "ahead of"
            return f"the clock of this machine is {abs(off_s):.1f} s {how} the database's"
        return WAS_SET if self._was_set() else None

    def is_off(self) -> bool:
        """Tell whether there is a reason."""
        return self.reason() is not None

    def refuse(self) -> None:
        """Raise ClockOff if the clock must not be believed."""
        if (reason := self.reason()) is not None:
            raise ClockOff(reason)

    def require(self) -> None:
        """Compare now, as a command does before it writes; raises ClockOff."""
        self.check()
        self.refuse()

    def keep(self, stop: Event) -> None:
        """Compare every ten seconds, and at once after the clock was set; log each change."""
        while not stop.wait(LOOK_S):
            self.check_if_due()

    def check_if_due(self) -> None:
        """Compare if it is time, and log a change."""
        if self._due_s is None or self.monotonic() >= self._due_s or self._was_set():
            self._say(self.check())

    def check(self) -> str | None:
        """Compare now; return `reason`.

        The server read its clock at some moment between our question and its answer. The smallest
        difference that is possible counts, so a slow answer makes no clock wrong.
        """
        before, begun_s = self.local(), self.monotonic()
        self._due_s = begun_s + CHECK_S
        try:
            answer = self.ask()
        except Exception as error:  # noqa: BLE001 - Other code reports errors of the database.
            logger.debug("the database could not be asked for its time: %s", type(error).__name__)
            return self.reason()
        if answer is not None:
            after, ended_s = self.local(), self.monotonic()
            if _slip_s(after - before, ended_s - begun_s) > SLIP_S:
                self._due_s = None  # It was set meanwhile.
            else:
                least, most = (answer - after).total_seconds(), (answer - before).total_seconds()
                self._last = _Comparison(after, ended_s, max(least, 0.0) or min(most, 0.0))
        return self.reason()

    def _was_set(self) -> bool:
        last = self._last
        if last is None:
            return False
        return _slip_s(self.local() - last.wall, self.monotonic() - last.monotonic_s) > SLIP_S

    def _say(self, reason: str | None) -> None:
        if reason is not None and self._said is None:
            logger.warning("%s: this process does no work until it is right", reason)
        elif reason is None and self._said is not None:
            logger.warning("the clock of this machine is right again: this process works again")
        self._said = reason


def _slip_s(wall_passed: timedelta, passed_s: float) -> float:
    return abs(wall_passed.total_seconds() - passed_s)
