"""Why requests get 503: one line for many of them, with the reason in the database's own words."""

import logging
import time
from threading import Lock
from typing import cast

from app.bootstrap.container import Container
from app.http.edge.request import request_context
from app.watch.trouble import trouble_of

PART = "outages"
REASONS_MAX = 100  # Texts of errors may differ each time.
SAY_EVERY_S = 10.0  # A process that nobody reaches gets hundreds of requests a second.

logger = logging.getLogger(__name__)


class Outages:
    """Says each reason at once, and then how many requests met one, as long as it lasts."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._lock = Lock()
        self._said_at: dict[str, float] = {}
        self._unsaid = 0

    def note(self, error: Exception) -> str:
        """Count a request that gets 503 for an error; return the reason."""
        reason = trouble_of(error, self._container.persistence.place)
        now = time.monotonic()
        with self._lock:
            self._unsaid += 1
            if now - self._said_at.get(reason, -SAY_EVERY_S) < SAY_EVERY_S:
                return reason
            if len(self._said_at) >= REASONS_MAX:
                self._said_at.clear()
            self._said_at[reason], count, self._unsaid = now, self._unsaid, 0
        logger.error("requests get 503: %s", reason, extra={"requests": count})
        return reason


def outages() -> Outages:
    """Return those of the app that answers."""
    return cast("Outages", request_context().parts[PART])
