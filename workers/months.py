"""The end of a month: the clock closes each month of the books, the oldest first."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from domain.accounts.wallet import Wallet
from domain.cause import Cause, Clock
from domain.errors import Conflict
from domain.finance.month import Month, month_id
from domain.log.log import Log
from domain.months import first_instant, month_of, months_before

# Entries that are dated in a month reach the log within a minute of its end. Those that come after
# the close are not lost: they belong to the next month.
SETTLES_AFTER = timedelta(minutes=5)
OVERDUE_AFTER = timedelta(hours=1)  # The clock looks each minute.
# Per tick; each waits for the disk, and so do the sweeps meanwhile.
MONTHS_MAX = 12

logger = logging.getLogger(__name__)


class MonthEnd:
    """Closes the months from that of the first wallet on; the log decides which are closed.

    `clock` is the earlier one of this machine and the database server: a month has to be over by
    both. The memory of this object only avoids asking the log again.
    """

    def __init__(self, log: Log, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._done: tuple[str | None, str] | None = None  # The server, and the month that is open.

    def run(self) -> int:
        """Close at most MONTHS_MAX months that are over; return how many were closed."""
        now = self._clock()
        open_month = month_of(now - SETTLES_AFTER)
        self._log.head()  # A process that had nothing to do would not notice a new server.
        if self._done == (self._log.server, open_month):
            return 0
        server = self._log.server  # Another server may have lost closed months.
        months = [*islice(self._not_closed(open_month), MONTHS_MAX)]
        closed = sum(self._close(month, Cause(now, f"month-{month}")) for month in months)
        if len(months) < MONTHS_MAX:
            self._done = (server, open_month)
        return closed

    def overdue(self) -> list[str]:
        """Return the months that ended over an hour ago and are not closed."""
        open_month = month_of(self._clock() - SETTLES_AFTER - OVERDUE_AFTER)
        newest = month_of(first_instant(open_month) - timedelta(days=1))
        if self._log.find(Month, month_id(newest)) is not None:
            return []  # Months are closed in order, so all are.
        return [*self._not_closed(open_month)]

    def _not_closed(self, open_month: str) -> Iterator[str]:
        """Yield the months since the first wallet that are over and not closed, oldest first."""
        opened = self._log.first(Wallet.Opened)
        first = open_month if opened is None else month_of(opened.timestamp)
        for month in months_before(first, open_month):
            if self._log.find(Month, month_id(month)) is None:
                yield month

    def _close(self, month: str, cause: Cause) -> bool:
        try:
            self._log.append(Month.close(month, cause))
        except Conflict:  # Another process was first.
            return False
        logger.info("month %s is closed", month)
        return True
