"""Trouble that lasts: said once with its reason, again each minute, and once when it is over."""

import logging
import time

from sqlalchemy.exc import DBAPIError

from domain.errors import ServiceUnavailable
from projections.engine.database import is_outage

SAY_EVERY_S = 60.0
REASONS_MAX = 100  # Texts of errors may differ each time.

logger = logging.getLogger(__name__)


class Complaint:
    """What one thread says of something that it tries again and again."""

    def __init__(self, what: str, expected: type[Exception] = ServiceUnavailable) -> None:
        self._what = what
        self._expected = expected
        self._said_at: dict[str, float] = {}  # By reason: two of them may take turns.

    def of(self, error: Exception) -> None:
        """Say that it has failed, unless that has just been said; where, if nobody expected it."""
        reason, now = reason_of(error), time.monotonic()
        if now < self._said_at.get(reason, -SAY_EVERY_S) + SAY_EVERY_S:
            return
        if len(self._said_at) >= REASONS_MAX:
            self._said_at.clear()
        self._said_at[reason] = now
        known = isinstance(error, self._expected) or is_outage(error)
        logger.error("%s failed: %s", self._what, reason, exc_info=None if known else error)

    def over(self) -> None:
        """Say that it works again, if anything else has been said."""
        if self._said_at:
            self._said_at.clear()
            logger.info("%s works again", self._what)


def reason_of(error: BaseException) -> str:
    """Return the words of whoever failed first: a server or its driver, without quoted values."""
    while (cause := error.orig if isinstance(error, DBAPIError) else error.__cause__) is not None:
        error = cause
    words = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
