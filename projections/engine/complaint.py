"""Log trouble that lasts: once with its reason, again every minute, and once when it is over."""

import logging
import time

from sqlalchemy.exc import DBAPIError

from domain.errors import ServiceUnavailable
from projections.engine.database import is_outage

SAY_EVERY_S = 60.0
REASONS_MAX = 100  # Some errors have a new text each time, so the memory is bounded.

logger = logging.getLogger(__name__)


class Complaint:
    """Logs the failures of one thing that a thread tries again and again."""

    def __init__(self, what: str, expected: type[Exception] = ServiceUnavailable) -> None:
        self._what = what
        self._expected = expected
        self._said_at: dict[str, float] = {}  # By reason, because two reasons may alternate.

    def of(self, error: Exception) -> None:
        """Log a failure, unless it was just logged; add the traceback if nobody expected it."""
        reason, now = reason_of(error), time.monotonic()
        if now < self._said_at.get(reason, -SAY_EVERY_S) + SAY_EVERY_S:
            return
        if len(self._said_at) >= REASONS_MAX:
            self._said_at.clear()
        self._said_at[reason] = now
        known = isinstance(error, self._expected) or is_outage(error)
        logger.error("%s failed: %s", self._what, reason, exc_info=None if known else error)

    def over(self) -> None:
        """Log that it works again, if a failure was logged before."""
        if self._said_at:
            self._said_at.clear()
            logger.info("%s works again", self._what)


def reason_of(error: BaseException) -> str:
    """Return the text of the first error in the chain (server's or driver's), without values."""
    while (cause := error.orig if isinstance(error, DBAPIError) else error.__cause__) is not None:
        error = cause
    words = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
