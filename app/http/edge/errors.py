"""Error handlers: whatever is raised becomes a JSON reply that reveals nothing internal."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from eventsourcing.persistence import PersistenceError
from flask import Response
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException

from app.http.edge.callers import challenge
from app.http.edge.calling import log_place
from app.http.edge.oauth_errors import OAuthRefused, is_token_request, oauth_problem, oauth_refusal
from app.http.edge.outages import outages
from app.http.edge.problems import INTERNAL, UNAVAILABLE, Problem, problem_of, problem_of_http
from app.http.edge.replies import failure
from app.security.keys import SigningKeysError
from domain.errors import Conflict, Refused, ServiceUnavailable

logger = logging.getLogger(__name__)


def answer(error: Exception) -> Response:
    """Answer an exception by the nearest of its classes; an error in doing so is a bug of ours."""
    try:
        return next(_ANSWERS[kind] for kind in type(error).__mro__ if kind in _ANSWERS)(error)
    except Exception as bug:  # noqa: BLE001  # Whatever the error.
        return answer_unexpected(bug)


def answer_refusal(refusal: Refused) -> Response:
    if isinstance(refusal, ServiceUnavailable):
        outages().note(refusal)
    return _answer(problem_of(refusal), challenge(refusal))


def answer_http(error: HTTPException) -> Response:
    """Answer an error of the framework, keeping its `Allow`."""
    kept = {name: value for name, value in error.get_headers() if name == "Allow"}
    return _answer(problem_of_http(error), kept)


def answer_unavailable(error: Exception) -> Response:
    """Answer while a database is unreachable."""
    outages().note(error)
    return _answer(UNAVAILABLE, {})


def answer_without_keys(_: SigningKeysError) -> Response:
    """Answer while the signing keys cannot be read; their reader has logged it."""
    return _answer(UNAVAILABLE, {})


def answer_unexpected(error: Exception) -> Response:
    """Answer a bug of ours."""
    log_place(logger, error)
    return _answer(INTERNAL, {})


def _answer(problem: Problem, headers: dict[str, str]) -> Response:
    if is_token_request():
        return oauth_problem(problem, headers)
    return failure(problem, headers)


# When a Conflict reaches the edge nothing was taken, so the same request may be sent again.
_ANSWERS: Mapping[type, Callable[[Any], Response]] = {
    Refused: answer_refusal,
    OAuthRefused: oauth_refusal,
    HTTPException: answer_http,
    SQLAlchemyError: answer_unavailable,
    PersistenceError: answer_unavailable,
    Conflict: answer_unavailable,
    SigningKeysError: answer_without_keys,
    Exception: answer_unexpected,
}
