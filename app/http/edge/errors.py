"""Error handlers: whatever is raised becomes a JSON reply that reveals nothing internal.

The reason of 503 replies is logged in the database's own words, one line for many requests.
"""

import logging
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, cast

from eventsourcing.persistence import PersistenceError
from flask import Response
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException

from app.bootstrap.container import Container
from app.http.edge.callers import challenge
from app.http.edge.oauth_errors import OAuthRefused, is_token_request, oauth_problem, oauth_refusal
from app.http.edge.problems import (
    INTERNAL,
    UNAVAILABLE,
    Problem,
    problem_of,
    problem_of_http,
    wrong_method,
)
from app.http.edge.replies import Written, failed, json_response
from app.http.edge.request import request_context
from app.security.key_file import SigningKeysError
from app.watch.trouble import log_place, trouble_of
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

Told = tuple[Problem, Mapping[str, str]]  # With headers beside those of the problem.

logger = logging.getLogger(__name__)


class Outages:
    """Logs each new reason of 503 replies at once, then at intervals how many requests got one."""

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
    return cast("Outages", request_context().kept[OUTAGES])


def refused(refusal: Refused) -> Told:
    if isinstance(refusal, NetworkUnavailable) and request_context().parts.gate.held:
        refusal = InstallationHeld()  # It was not asked, however well it is.
    if isinstance(refusal, ServiceUnavailable):
        outages().note(refusal)
    return problem_of(refusal), challenge(refusal)


def of_http(error: HTTPException) -> Told:
    """Tell of an error of the framework, keeping its `Allow`."""
    for name, value in error.get_headers():
        if name == "Allow":
            methods = ", ".join(sorted(value.split(", ")))  # They come from a set.
            return wrong_method(methods), {name: methods}
    return problem_of_http(error), {}


def unavailable(error: Exception) -> Told:
    """Tell that a database is unreachable."""
    outages().note(error)
    return UNAVAILABLE, {}


def unexpected(error: Exception) -> Told:
    log_place(logger, error)
    return INTERNAL, {}


# When a Conflict reaches the edge nothing was charged, so the same request may be sent again.
PROBLEMS: Mapping[type, Callable[[Any], Told]] = {
    Refused: refused,
    HTTPException: of_http,
    SQLAlchemyError: unavailable,
    PersistenceError: unavailable,
    Conflict: unavailable,
    SigningKeysError: lambda _: (UNAVAILABLE, {}),  # Their reader has logged it.
    Exception: unexpected,
}


def told(error: Exception) -> Written:
    """Return the reply that tells of an error."""
    return failed(*_problem(error))


def _problem(error: Exception) -> Told:
    kind = next(each for each in type(error).__mro__ if each in PROBLEMS)
    return PROBLEMS[kind](error)


def answer(error: Exception) -> Response:
    if is_token_request():
        return oauth_problem(*_problem(error))
    return json_response(*told(error))


HANDLERS = {OAuthRefused: oauth_refusal, **dict.fromkeys(PROBLEMS, answer)}
