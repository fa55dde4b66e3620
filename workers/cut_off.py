"""The time by which a month is over, and whether clocks can be believed about it.

What is done once and for ever must not follow a clock that is ahead for a minute. So it waits while
two clocks differ, and while the installation seems to have been dead for more than a day. A note
that every process renews says when it was alive. A clock that jumps ahead finds that note old, and
renews it only after it has run for a day without being set, or when an operator closes a month.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from domain.cause import CLOCK_OFF_MAX, Clock
from projections.engine.positions import Source
from projections.stores.notes import Notes

SILENT_MAX = timedelta(days=1)

logger = logging.getLogger(__name__)


@dataclass
class CutOff:
    """Tells the database's time and what speaks against it.

    `shared_clock` is the database's clock, that of this machine where it has none. `wall` and
    `monotonic` are the clocks of this machine, `started` what they said when the process started.
    `check` compares the two machines and says what is wrong.
    """

    shared_clock: Clock
    check: Callable[[], str | None]
    notes: Notes
    source: Source
    wall: Clock
    monotonic: Callable[[], float]
    started: tuple[datetime, float]  # Nobody has set the clock of this machine since.
    _said: str | None = field(default=None, init=False)

    def doubt(self) -> str | None:
        """Say why nothing may be done for ever by the present time; None if it may."""
        if (reason := self.check()) is not None:
            return reason
        now, last = self.shared_clock(), self._last_sign()
        runs_for = self._runs_for()  # Asked each time, because it notices that the clock was set.
        if last is None or now - last <= SILENT_MAX or runs_for >= SILENT_MAX:
            return None
        return (
            f"by this clock the installation was dead from {last:%Y-%m-%d %H:%M} UTC on for more "
            "than a day; if the clock is right, close the month: python -m app months close YYYY-MM"
        )

    def _runs_for(self) -> timedelta:
        """Return for how long this process has seen that nobody sets the clock of its machine."""
        wall, now_s = self.wall(), self.monotonic()
        since, since_s = self.started
        runs_for = timedelta(seconds=now_s - since_s)
        if abs(wall - since - runs_for) <= CLOCK_OFF_MAX:
            return runs_for
        self.started = wall, now_s
        return timedelta(0)

    def is_doubted(self) -> bool:
        """Tell whether to wait; a new reason is logged."""
        found = self.doubt()
        if found is not None and self._said is None:
            logger.warning("no month is closed and no fee falls due: %s", found)
        self._said = found
        return found is not None

    def live(self) -> None:
        """Keep a sign of life; in doubt the last one, because followers leave others by it."""
        last = self._last_sign() if self.is_doubted() else self.shared_clock()
        if last is not None:
            self.notes.replace("alive", "", last)

    def confirm(self) -> None:
        """Believe the clock, because an operator has acted by it."""
        self.notes.replace("alive", "", self.shared_clock())

    def _last_sign(self) -> datetime | None:
        """Return when the installation was last alive; before its first note, what else tells."""
        if (note := self.notes.newest("alive")) is not None:
            return note.at
        log, database, positions, _ = self.source
        newest = log.stored(log.head() - 1, 1)
        beats = (each.caught_up_at for each in positions.all(database).values())
        signs = [*(each.timestamp for each in newest), *(at for at in beats if at is not None)]
        return max(signs, default=None)
