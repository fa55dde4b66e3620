"""Compares this machine's clock with the database's; a process whose clock is wrong does no work.

Nothing is corrected, because hosts keep time by NTP.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime
from math import nan

from domain.cause import CLOCK_OFF_MAX, Clock
from domain.errors import ClockOff

CHECK_S = 10.0
SLIP_S = 0.5  # If the wall clock departs further from monotonic time, somebody has set it.
OFF_MAX_S = CLOCK_OFF_MAX.total_seconds()
WAS_SET = "the clock of this machine was set and is being compared with the database's"

logger = logging.getLogger(__name__)


class ClockCheck:
    """Tells why this machine's clock must not be believed, as of the last comparison.

    SQLite has no clock of its own (`ask` returns None), so there the clock is never wrong. While
    the database does not answer, the last comparison counts.
    """

    def __init__(self, local: Clock, query: Callable[[], datetime | None]) -> None:
        self.local, self.ask = local, query
        self.monotonic = time.monotonic
        self.off_s = 0.0  # How far the database's clock is ahead of this machine's.
        self.wrong: str | None = None  # What the last comparison has found.
        self._lead_s = nan  # How far this machine's clock was ahead of monotonic time then.
        self._due_s = 0.0
        self._said: str | None = None

    def now(self) -> datetime:
        """Tell the time; raises ClockOff if it must not be believed. This asks nobody.

        A clock that somebody sets is doubted from that moment on until it is compared.
        """
        now = self.local()
        if self.wrong or abs(now.timestamp() - self.monotonic() - self._lead_s) > SLIP_S:
            raise ClockOff(self.wrong or WAS_SET)
        return now

    def reason(self) -> str | None:
        """Say why the clock must not be believed; None if it may."""
        try:
            self.now()
        except ClockOff as error:
            return str(error)
        return None

    def is_off(self) -> bool:
        """Tell whether there is a reason."""
        return self.reason() is not None

    def require(self) -> datetime:
        """Compare and tell the time, as a command does before it writes; raises ClockOff."""
        self.check()
        return self.now()

    def check_if_due(self) -> None:
        """Compare if it is time, or while the clock is not believed; log a change."""
        if self.monotonic() < self._due_s and not self.is_off():
            return
        reason = self.check()
        if reason is not None and self._said is None:
            logger.warning("%s: this process does no work until it is right", reason)
        elif reason is None and self._said is not None:
            logger.warning("the clock of this machine is right again: this process works again")
        self._said = reason

    def check(self) -> str | None:
        """Compare now; return `reason`.

        The server read its clock at some moment between our question and its answer. The smallest
        difference that is possible counts, so a slow answer makes no clock wrong.
        """
        before, started_s = self.local(), self.monotonic()
        self._due_s = started_s + CHECK_S
        try:
            answer = self.ask()
        except Exception as error:  # noqa: BLE001 - Other code reports errors of the database.
            logger.debug("the database could not be asked for its time: %s", type(error).__name__)
            return self.reason()
        if answer is None:
            return None
        after, ended_s = self.local(), self.monotonic()
        if abs((after - before).total_seconds() - (ended_s - started_s)) > SLIP_S:
            self._due_s = 0.0  # It was set meanwhile.
            return self.reason()
        least, most = (answer - after).total_seconds(), (answer - before).total_seconds()
        self.off_s = off_s = max(least, 0.0) or min(most, 0.0)
        how = "behind" if off_s > 0 else "ahead of"
        text = f"the clock of this machine is {abs(off_s):.1f} s {how} the database's"
        self.wrong = text if abs(off_s) > OFF_MAX_S else None
        # The last, or another thread could believe a clock that was set before it is known.
        self._lead_s = after.timestamp() - ended_s
        return self.reason()
