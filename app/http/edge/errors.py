"""Error handlers: whatever is raised becomes a JSON reply that reveals nothing internal.

The reason of 503 replies is logged in the database's own words, one line for many requests.
"""

import logging
import time
from collections.abc import Mapping
from threading import Lock

from eventsourcing.persistence import PersistenceError
from flask import Response
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from app.bootstrap.container import Container
from app.http.edge import problems, replies
from app.http.edge.callers import challenge
from app.http.edge.request import CURRENT
from app.security.key_file import SigningKeysError
from app.watch.trouble import log_traceback, trouble_of
from domain.errors import (
    Conflict,
    InstallationHeld,
    NetworkUnavailable,
    Refused,
    ServiceUnavailable,
)

OUTAGES = "outages"  # The key of `Outages` among the extensions of the application.
REASONS_MAX = 100  # Some errors have a new text each time, so the memory is bounded.
SAY_EVERY_S = 10.0  # A process without its database gets hundreds of requests a second.
# When a Conflict reaches the edge nothing was charged, so the same request may be sent again.
OUTAGE = SQLAlchemyError | PersistenceError | Conflict

logger = logging.getLogger(__name__)


class Outages:
    """Logs each new reason of 503 replies at once, then at intervals how many requests got one."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._lock = Lock()
        self._said_at: dict[str, float] = {}
        self._unsaid = 0

    def record(self, error: Exception) -> str:
        """Count a request that gets 503 because of an error; return the reason."""
        reason = trouble_of(error, self._container.persistence.location)
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


def reply_of(error: Exception) -> replies.Written:
    """Return the reply that tells of an error, which the token endpoint tells in its own shape."""
    refusal, headers = _refusal_of(error)
    headers = {**problems.retry_after(refusal), **headers}
    if CURRENT.get().environ["PATH_INFO"] == problems.TOKEN_PATH:
        return replies.oauth_body(refusal), refusal.status, {**problems.UNCACHED, **headers}
    return replies.failure_body(refusal, replies.reply_meta()), refusal.status, headers


def answer(error: Exception) -> Response:
    return replies.json_response(*reply_of(error))


def _refusal_of(error: Exception) -> tuple[Refused, Mapping[str, str]]:
    """Return what is told of an error, and headers that go with it."""
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        methods = ", ".join(sorted(error.valid_methods))  # They come from a set.
        return problems.Problem(405, f"This path takes only {methods}."), {"Allow": methods}
    if isinstance(error, HTTPException):  # Without its text, which may quote input.
        status = error.code or problems.INTERNAL.status
        return problems.OF_STATUS.get(status) or problems.Problem(status), {}
    given = CURRENT.get()
    if isinstance(error, NetworkUnavailable) and given.parts.gate.held:
        error = InstallationHeld()  # It was not asked, however well it is.
    if isinstance(error, ServiceUnavailable | OUTAGE):
        given.extensions[OUTAGES].record(error)
    if isinstance(error, Refused):
        more = problems.BASIC if error.code == "invalid_client" else challenge(error)
        return error, {**replies.replay_headers(error.is_bound), **more}
    if isinstance(error, OUTAGE | SigningKeysError):  # The reader of the keys has logged it.
        return problems.UNAVAILABLE, {}
    log_traceback(logger, error)
    return problems.INTERNAL, {}
