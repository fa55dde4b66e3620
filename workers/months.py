"""The end of a month: each month of the books is closed, the oldest first, by the clock.

Where the clock cannot be believed, an operator does it.
"""

import logging
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from domain.accounts.wallet import Wallet
from domain.cause import Cause
from domain.errors import Conflict, NotPossible
from domain.finance.month import Month
from domain.log.log import Log
from domain.months import first_instant, month_of, months_before, next_month
from workers.cut_off import CutOff

# Entries that are dated in a month reach the log within a minute of its end. Those that come after
# the close are not lost: they belong to the next month.
SETTLES_AFTER = timedelta(minutes=5)
OVERDUE_AFTER = timedelta(hours=1)  # The clock looks each minute.
# Per tick; each waits for the disk, and so do all other commits.
MONTHS_MAX = 12

logger = logging.getLogger(__name__)


class MonthEnd:
    """Closes the months from that of the first wallet on; the log decides which are closed.

    The memory of this object only avoids asking the log again.
    """

    def __init__(self, log: Log, cut_off: CutOff) -> None:
        self._log = log
        self._cut_off = cut_off
        self._done = ""  # The month that is open.

    def run(self) -> int:
        """Close at most MONTHS_MAX months that are over; return how many were closed."""
        now = self._cut_off.shared_clock()
        open_month = month_of(now - SETTLES_AFTER)
        if self._done == open_month:
            return 0
        if self._cut_off.is_doubted():
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
            if following is None or month < following:
                message = f"month {month} is closed, or before the first wallet"
            else:
                message = f"months are closed in their order: {following} comes first"
            raise NotPossible(message)
        self._log.append(Month.close(month, cause))
        self._cut_off.confirm()

    def closed_too_early(self) -> str | None:
        """Return the present month if it is closed, although it has not ended."""
        present = month_of(self._cut_off.shared_clock())
        return None if self._log.find(Month, Month.id_of(present)) is None else present

    def _not_closed(self, open_month: str) -> Iterator[str]:
        """Yield the months since the first wallet that are over and not closed, oldest first."""
        opened = self._log.first(Wallet.Opened)
        first = open_month if opened is None else month_of(opened.timestamp)
        for month in months_before(first, open_month):
            if self._log.find(Month, Month.id_of(month)) is None:
                yield month

    def _close(self, month: str, cause: Cause) -> bool:
        try:
            self._log.append(Month.close(month, cause))
        except Conflict:  # Another process was first.
            return False
        logger.info("month %s is closed", month)
        return True
