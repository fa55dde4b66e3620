"""The end of a month: each month of the books is closed, the oldest first, by the clock.

What is done once and for ever must not follow a clock that is ahead for a minute. So it waits while
two clocks differ, and while the installation seems to have been dead for more than a day. A note
that every process renews says when it was alive. A clock that jumps ahead finds that note old, and
renews it only after it has run for a day without being set, or when an operator closes a month.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from domain.accounts.wallet import Wallet
from domain.cause import CLOCK_OFF_MAX, Cause, Clock
from domain.errors import Conflict, NotPossible
from domain.finance.statement import Month
from domain.log.log import Log
from domain.months import first_instant, month_of, months_before, next_month
from projections.engine.positions import Source
from projections.stores.notes import Notes

# Entries that are dated in a month reach the log within a minute of its end. Those that come after
# the close are not lost: they belong to the next month.
SETTLES_AFTER = timedelta(minutes=5)
SILENT_MAX = timedelta(days=1)
OVERDUE_AFTER = timedelta(hours=1)  # The clock looks each minute.
# Per tick; each waits for the disk, and so do all other commits.
MONTHS_MAX = 12

logger = logging.getLogger(__name__)


@dataclass
class CutOff:
    """Tells the time by which a month is over, the database's, and what speaks against it.

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


class MonthEnd:
    """Closes the months from that of the first wallet on; the log decides which are closed.

    The memory of this object only avoids asking the log again.
    """

    def __init__(self, log: Log, cut_off: CutOff) -> None:
        self._log = log
        self._cut_off = cut_off
        self._done = ""  # The month that is open.
        self._first = ""  # That of the first wallet, as soon as there is one.
        self._searched = 0  # There is none up to this position: the log may be long and have none.

    def run(self) -> int:
        """Close at most MONTHS_MAX months that are over; return how many were closed."""
        now = self._cut_off.shared_clock()
        open_month = month_of(now - SETTLES_AFTER)
        if self._done == open_month or self._cut_off.is_doubted():
            return 0
        months = [*islice(self._not_closed(open_month), MONTHS_MAX)]
        closed = sum(self._close(month, Cause(now, f"month-{month}")) for month in months)
        if len(months) < MONTHS_MAX:
            self._done = open_month
        return closed

    def overdue(self) -> list[str]:
        """Return the months that ended over an hour ago and are not closed."""
        open_month = month_of(self._cut_off.shared_clock() - SETTLES_AFTER - OVERDUE_AFTER)
        newest = month_of(first_instant(open_month) - timedelta(days=1))
        if self._log.find(Month, Month.id_of(newest)) is not None:
            return []  # Months are closed in order, so all are.
        return [*self._not_closed(open_month)]

    def close(self, month: str, cause: Cause) -> None:
        """Close a month on purpose; NotPossible unless it is over and the next to be closed.

        Then the clock is believed again.
        """
        now = self._cut_off.shared_clock()
        if now < first_instant(next_month(month)):
            message = f"month {month} has not ended by the clock of the database ({now:%Y-%m-%d})"
            raise NotPossible(message)
        following = next(self._not_closed(month_of(now)), None)
        if following != month:
            over = f"month {month} is closed, or before the first wallet"
            early = f"months are closed in their order: {following} comes first"
            raise NotPossible(over if following is None or month < following else early)
        self._cut_off.confirm()  # First, for a month that is closed is refused.
        self._log.append(Month.close(month, cause))

    def closed_too_early(self) -> str | None:
        """Return the present month if it is closed, although it has not ended."""
        present = month_of(self._cut_off.shared_clock())
        return None if self._log.find(Month, Month.id_of(present)) is None else present

    def _not_closed(self, open_month: str) -> Iterator[str]:
        """Yield the months since the first wallet that are over and not closed, oldest first."""
        if not self._first:
            head, opened = self._log.head(), self._log.first(Wallet.Opened, after=self._searched)
            self._first = "" if opened is None else month_of(opened.timestamp)
            self._searched = head
        for month in months_before(self._first or open_month, open_month):
            if self._log.find(Month, Month.id_of(month)) is None:
                yield month

    def _close(self, month: str, cause: Cause) -> bool:
        try:
            self._log.append(Month.close(month, cause))
        except Conflict:  # Another process was first.
            return False
        logger.info("month %s is closed", month)
        return True
