"""Whether this process may act: by its clock, the hold of the installation, and drained providers.

The clock of this machine is compared with the database's. Nothing is corrected, because hosts keep
time by NTP; a process whose clock is wrong does no work.

A copy that `restore` made would tell, call and charge whatever the living one does, so it is held.
The mark is a note beside the log: copies of a held copy are held, and a failover holds nobody.
"""

import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from math import nan
from typing import TYPE_CHECKING

from domain.accounts.operator_acts import Act, OperatorAct
from domain.accounts.providers import Provider, drained
from domain.cause import CLOCK_OFF_MAX, Cause
from domain.errors import ClockOff, InstallationHeld

if TYPE_CHECKING:
    from app.bootstrap.container import Container

CHECK_S = 10.0
SLIP_S = 0.5  # If the wall clock departs further from monotonic time, somebody has set it.
OFF_MAX_S = CLOCK_OFF_MAX.total_seconds()
WAS_SET = "the clock of this machine was set and is being compared with the database's"
HELD, RELEASED = "held", "released"
MEANING = (
    "this installation is held: it tells no webhook, calls no network, brings no checkpoint, "
    "closes no month and charges nothing until: python -m app installation hold --end"
)

logger = logging.getLogger(__name__)


class Gate:
    """What one thread of the process looks at each second, and all who act read.

    SQLite has no clock of its own (`query` returns None), so there the clock is never wrong. While
    the database does not answer, the last comparison counts.
    """

    def __init__(self, parts: "Container") -> None:
        self._parts, self.local, self.monotonic = parts, parts.clock, time.monotonic
        query = lambda: parts.views.server_time()  # noqa: E731, PLW0108  # It opens a database.
        self.query: Callable[[], datetime | None] = query
        self.held: bool | None = None  # None: nobody has looked yet.
        self.drained: Mapping[str, Provider.Drained] = {}
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
        try:
            self.now()
        except ClockOff as error:
            return str(error)
        return None

    def is_off(self) -> bool:
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
            answer = self.query()
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

    def is_held(self) -> bool:
        """Tell whether the installation is held; raises while nobody could find out."""
        return self.refresh_hold() if self.held is None else self.held

    def is_shut(self) -> bool:
        """Tell whether to act on nothing; what only reads, or audits, asks `is_off`."""
        return self.is_off() or self.is_held()

    def refuse_held(self) -> None:
        if self.is_held():
            raise InstallationHeld

    def refuse(self) -> None:
        self.now()
        self.refuse_held()

    def is_drained(self, provider: str) -> bool:
        """Tell whether a provider gets no new work, by an operator's word."""
        return provider in self.drained

    def spares(self, provider: str) -> bool:
        """Tell whether a provider is not to be called, as of the last look."""
        return bool(self.wrong) or provider in self.drained or self.is_held()

    def refresh(self, *, drains: bool = True) -> None:
        """Look at all of it; raises while the database does not answer."""
        self.check_if_due()
        self.refresh_hold()
        if drains:
            self.refresh_drains()

    def refresh_hold(self) -> bool:
        """Read the mark; a change is logged, and so is the mark at the start of a process."""
        known, self.held = self.held, self._parts.notes.value("hold") == HELD
        if self.held and not known:
            logger.warning("%s", MEANING)
        elif known and not self.held:
            logger.warning("this installation is released: it acts again")
        return self.held

    def refresh_drains(self) -> Mapping[str, Provider.Drained]:
        """Read which providers are drained, since when and by whom."""
        settings = self._parts.settings
        self.drained = drained(self._parts.log, [*settings.lookup_providers, *settings.networks])
        return self.drained

    def switch(self, cause: Cause, *, held: bool) -> bool:
        """Hold the installation or release it; False if it is so already.

        The log knows who does it before it holds.
        """
        if self.refresh_hold() == held:
            return False
        act: Act = "installation.held" if held else "installation.released"
        self._parts.log.append(OperatorAct.of(act, "installation", cause))
        self._parts.notes.replace("hold", HELD if held else RELEASED, cause.at)
        return self.refresh_hold() == held
