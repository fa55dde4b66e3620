"""Error handlers: whatever is raised becomes one JSON reply, and nothing of ours leaks into it."""

import logging

from eventsourcing.persistence import PersistenceError
from flask import Flask, Response
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException

from app.http.callers import challenge
from app.http.calling import log_place
from app.http.envelope import failure
from app.http.oauth_errors import OAuthRefused, is_token_request, oauth_problem, oauth_refusal
from app.http.outages import outages
from app.http.problems import INTERNAL, UNAVAILABLE, Problem, problem_of, problem_of_http
from app.tokens.keys import SigningKeysError
from domain.errors import Conflict, Refused, ServiceUnavailable

logger = logging.getLogger(__name__)


def register(app: Flask) -> None:
    """Handle every exception of an app."""
    app.register_error_handler(Refused, answer_refusal)
    app.register_error_handler(OAuthRefused, oauth_refusal)
    app.register_error_handler(HTTPException, answer_http)
    app.register_error_handler(Exception, answer_unexpected)
    app.register_error_handler(SigningKeysError, answer_without_keys)
    # A Conflict that reaches the edge took nothing: the same request may be sent again.
    for unreachable in (SQLAlchemyError, PersistenceError, Conflict):
        app.register_error_handler(unreachable, answer_unavailable)


def answer_refusal(refusal: Refused) -> Response:
    """Answer what the domain declines."""
    if isinstance(refusal, ServiceUnavailable):
        outages().note(refusal)
    return _answer(problem_of(refusal), challenge(refusal))


def answer_http(error: HTTPException) -> Response:
    """Answer what the framework declines, keeping its `Allow`."""
    kept = {name: value for name, value in error.get_headers() if name == "Allow"}
    return _answer(problem_of_http(error), kept)


def answer_unavailable(error: Exception) -> Response:
    """Answer while a database is away."""
    outages().note(error)
    return _answer(UNAVAILABLE, {})


def answer_without_keys(_: SigningKeysError) -> Response:
    """Answer while the signing keys cannot be read; who reads them has said so."""
    return _answer(UNAVAILABLE, {})


def answer_unexpected(error: Exception) -> Response:
    """Answer our own bugs."""
    log_place(logger, error)
    return _answer(INTERNAL, {})


def _answer(problem: Problem, headers: dict[str, str]) -> Response:
    if is_token_request():
        return oauth_problem(problem, headers)
    return failure(problem, headers)
