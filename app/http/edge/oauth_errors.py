"""Errors of the token endpoint, in the shape of RFC 6749 §5.2, without our envelope."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, ClassVar

from flask import Response
from msgspec import Struct

from app.http.edge.problems import Problem
from app.http.edge.replies import json_response
from app.http.edge.request import current_request
from projections.engine.shape import MORE_MAY_COME, means, one_of

TOKEN_PATH = "/auth/token"  # noqa: S105 - The path of the endpoint, no secret.
FORM = "application/x-www-form-urlencoded"
NOT_A_FORM = f"The body must be a form ({FORM})."
SERVER_ERROR = "server_error"
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class OAuthRefused(Exception):
    """Raised when a token is refused; its text is the `error_description`, in ASCII."""

    code: ClassVar[str]
    status: ClassVar[int] = 400
    headers: Mapping[str, str] = {}


class InvalidRequest(OAuthRefused):
    """Raised for a form that lacks a parameter, repeats one, or cannot be read."""

    code = "invalid_request"


class InvalidClient(OAuthRefused):
    """Raised alike for missing credentials, an unknown or revoked client, and a wrong secret."""

    code = "invalid_client"
    status = 401
    headers: Mapping[str, str] = {"WWW-Authenticate": 'Basic realm="token", charset="UTF-8"'}


class InvalidScope(OAuthRefused):
    """Raised for a scope that the client does not have."""

    code = "invalid_scope"


class UnsupportedGrantType(OAuthRefused):
    """Raised for every grant except client credentials."""

    code = "unsupported_grant_type"


class SlowDown(OAuthRefused):
    """Raised for a caller that has sent too many wrong secrets; `wait_s` is how long to wait."""

    code = "slow_down"
    status = 429

    def __init__(self, wait_s: int) -> None:
        super().__init__("Too many wrong secrets from this address; wait before the next attempt.")
        self.headers = {"Retry-After": str(wait_s)}


class OAuthError(Struct):
    """A refused token request (RFC 6749 §5.2)."""

    error: Annotated[
        str,
        means(
            **one_of(
                "OAuthErrorCode",
                [*(each.code for each in OAuthRefused.__subclasses__()), SERVER_ERROR],
                MORE_MAY_COME,
            )
        ),
    ]
    error_description: Annotated[str, means("For people.")]


def is_token_request() -> bool:
    """Tell whether the request is for the token endpoint, whatever its method."""
    return current_request().path == TOKEN_PATH


def oauth_refusal(refused: OAuthRefused) -> Response:
    """Reply to a refused token request."""
    body = OAuthError(refused.code, str(refused))
    return json_response(body, refused.status, {**NO_STORE, **refused.headers})


def oauth_problem(problem: Problem, headers: Mapping[str, str]) -> Response:
    """Reply at the token endpoint with a problem of the framework or of the service."""
    sent = {**NO_STORE, **problem.headers, **headers}
    return json_response(oauth_body_of(problem), problem.status, sent)


def oauth_body_of(problem: Problem) -> OAuthError:
    """Return a problem in the shape of the token endpoint."""
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return OAuthError(SERVER_ERROR, problem.message)
    if problem.status == HTTPStatus.TOO_MANY_REQUESTS:
        return OAuthError(SlowDown.code, problem.message)
    wrong_type = problem.status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    return OAuthError(InvalidRequest.code, NOT_A_FORM if wrong_type else problem.message)
