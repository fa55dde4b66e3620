"""Logs why requests get 503: one line for many requests, with the database's own reason."""

import logging
import time
from threading import Lock
from typing import cast

from app.bootstrap.container import Container
from app.http.edge.request import request_context
from app.watch.trouble import trouble_of

PART = "outages"
REASONS_MAX = 100  # Some errors have a new text each time, so the memory is bounded.
SAY_EVERY_S = 10.0  # A process without its database gets hundreds of requests a second.

logger = logging.getLogger(__name__)


class Outages:
    """Logs each new reason at once, then at intervals how many requests it has hit."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._lock = Lock()
        self._said_at: dict[str, float] = {}
        self._unsaid = 0

    def note(self, error: Exception) -> str:
        """Count a request that gets 503 because of an error; return the reason."""
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
    """Return the outages of the app that answers this request."""
    return cast("Outages", request_context().parts[PART])
