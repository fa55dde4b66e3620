"""The time by which a month is over, and whether clocks can be believed about it.

What is done once and for ever must not follow a clock that is ahead for a minute. So it waits while
two clocks differ, and while the installation seems to have been dead for more than a day. A note
that every process renews says when it was alive. A clock that jumps ahead finds that note old, and
renews it only after a day at a steady pace, or when an operator closes a month.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from domain.cause import Clock
from workers.steadiness import Steadiness

APART_MAX = timedelta(seconds=2)
SILENT_MAX = timedelta(days=1)

logger = logging.getLogger(__name__)


class CutOff:
    """Tells the database's time and what speaks against it.

    `shared` is the database's clock, `apart` measures how far this machine's is from it.
    `last_sign` returns when the database last saw the installation alive, `alive` keeps a new sign.
    """

    def __init__(
        self,
        shared: Clock,
        apart: Callable[[], timedelta],
        last_sign: Callable[[], datetime | None],
        alive: Callable[[datetime], None],
        steadiness: Steadiness,
    ) -> None:
        self._shared = shared
        self._apart = apart
        self._last_sign = last_sign
        self._alive = alive
        self._steadiness = steadiness
        self._said: str | None = None

    def now(self) -> datetime:
        """Return the time of the database; that of this machine where it has none."""
        return self._shared()

    def doubt(self) -> str | None:
        """Say why nothing may be done for ever by the present time; None if it may."""
        if abs(self._apart()) > APART_MAX:
            return "the clocks of this machine and of the database differ by more than 2 s"
        now, last = self._shared(), self._last_sign()
        # Asked each time, because it also notices that a clock was set.
        is_steady = self._steadiness.lasts(SILENT_MAX)
        if last is None or now - last <= SILENT_MAX or is_steady:
            return None
        return (
            f"by this clock the installation was dead from {last:%Y-%m-%d %H:%M} UTC on for more "
            "than a day; if the clock is right, close the month: python -m app months close YYYY-MM"
        )

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
