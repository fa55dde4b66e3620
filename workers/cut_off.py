"""The time by which a month is over, and whether clocks can be believed about it.

What is done once and for ever must not follow a clock that is ahead for a minute. So it waits while
two clocks differ, and while the installation seems to have been dead for more than a day. A note
that every process renews says when it was alive. A clock that jumps ahead finds that note old, and
renews it only after it has run for a day without being set, or when an operator closes a month.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from domain.cause import CLOCK_OFF_MAX, Clock

SILENT_MAX = timedelta(days=1)

logger = logging.getLogger(__name__)


class CutOff:
    """Tells the database's time and what speaks against it.

    `shared` is the database's clock. `own` are the wall clock and the monotonic clock of this
    machine, `began` what they told when the process began. `check` compares the two machines and
    says what is wrong. `last_sign` returns when the database last saw the installation alive,
    `alive` keeps a new sign.
    """

    def __init__(  # noqa: PLR0913  # It stands between three clocks and the sign of life.
        self,
        shared: Clock,
        check: Callable[[], str | None],
        last_sign: Callable[[], datetime | None],
        alive: Callable[[datetime], None],
        own: tuple[Clock, Callable[[], float]],
        began: tuple[datetime, float],
    ) -> None:
        self._shared = shared
        self._wall, self._monotonic = own
        self._check = check
        self._last_sign = last_sign
        self._alive = alive
        self._since = began  # Nobody has set the clock of this machine since.
        self._said: str | None = None

    def now(self) -> datetime:
        """Return the time of the database; that of this machine where it has none."""
        return self._shared()

    def doubt(self) -> str | None:
        """Say why nothing may be done for ever by the present time; None if it may."""
        if (reason := self._check()) is not None:
            return reason
        now, last = self._shared(), self._last_sign()
        runs_for = self._runs_for()  # Asked each time, because it notices that the clock was set.
        if last is None or now - last <= SILENT_MAX or runs_for >= SILENT_MAX:
            return None
        return (
            f"by this clock the installation was dead from {last:%Y-%m-%d %H:%M} UTC on for more "
            "than a day; if the clock is right, close the month: python -m app months close YYYY-MM"
        )

    def _runs_for(self) -> timedelta:
        """Return for how long this process has seen that nobody sets the clock of its machine."""
        wall, passed_s = self._wall(), self._monotonic()
        since, since_s = self._since
        runs_for = timedelta(seconds=passed_s - since_s)
        if abs(wall - since - runs_for) <= CLOCK_OFF_MAX:
            return runs_for
        self._since = wall, passed_s
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
        last = self._last_sign() if self.is_doubted() else self._shared()
        if last is not None:
            self._alive(last)

    def confirm(self) -> None:
        """Believe the clock, because an operator has acted by it."""
        self._alive(self._shared())
