"""Errors as they are sent: those of HTTP itself stand here, refusals in `domain/errors.py`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from werkzeug.exceptions import HTTPException

from domain import errors
from domain.errors import Refused

SOON_S = 1  # For what ends by itself, such as a full queue or another request with the same key.
LATER_S = 5  # For an outage; the lookup provider is probed this often.
VALIDATION = errors.ValidationFailed.code


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as it is sent; `retryable` is stated on 409, 429 and every 5xx."""

    status: int
    code: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)
    retryable: bool = False
    retry_after_s: int | None = None
    cause: str = ""  # This and `advice`: as `Refused` has them.
    advice: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The header that says when to try again; none if that would not help."""
        if not self.retryable:
            return {}
        later = self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        return {"Retry-After": str(self.retry_after_s or (LATER_S if later else SOON_S))}

    def details_sent(self) -> dict[str, Any]:
        """Return the details as sent; for some statuses they say whether to try again."""
        details = dict(self.details)
        if self.status in {409, 429} or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            details["retryable"] = self.retryable
        return details


BAD_REQUEST = Problem(
    400,
    "BAD_REQUEST",
    "The request cannot be read; a body must be one JSON value in UTF-8, no name twice.",
    cause="the request cannot be read: the body is not JSON, or the request itself is not "
    "HTTP/1.1; the message says which",
    advice="correct the body",
)
BROKEN_HEAD = Problem(
    400, "BAD_REQUEST", "The first line or a header is not as HTTP has it (RFC 9112)."
)
NO_HOST = Problem(400, "BAD_REQUEST", "The header Host is missing (RFC 9112, section 3.2).")
MANY_HOSTS = Problem(
    400, "BAD_REQUEST", "There is more than one header Host (RFC 9112, section 3.2)."
)
ODD_HOST = Problem(
    400, "BAD_REQUEST", "The header Host is no name or address, perhaps with a port (RFC 9112)."
)
ODD_TARGET = Problem(
    400, "BAD_REQUEST", "The target is neither a path nor a URL of http or https (RFC 9112)."
)
BROKEN_BODY = Problem(
    400, "BAD_REQUEST", "The chunks of the body are not as HTTP has them (RFC 9112)."
)
UNKNOWN_PATH = Problem(404, "NOT_FOUND", "There is nothing at this path.")
WRONG_METHOD = Problem(
    405,
    "METHOD_NOT_ALLOWED",
    "This path does not take this method.",
    cause="the path does not take the method; the message and `Allow` name those that it takes",
    advice="use one of these",
)
TOO_LARGE = Problem(
    413,
    "PAYLOAD_TOO_LARGE",
    "The body is larger than 1 MiB.",
    advice="send less in one request",
)
WRONG_MEDIA_TYPE = Problem(
    415,
    "UNSUPPORTED_MEDIA_TYPE",
    "Send the body as JSON, not compressed, with Content-Type: application/json.",
    cause="the body is not JSON",
    advice="send `Content-Type: application/json`, not compressed",
)
INTERNAL = Problem(
    500,
    "INTERNAL_ERROR",
    "Something went wrong on our side.",
    cause="a fault of ours",
    advice="tell us the `request_id`",
)

# The server sends these itself, does not pass the request on, and closes the connection.
TIMED_OUT = Problem(
    408,
    "REQUEST_TIMEOUT",
    "The request was not complete in time.",
    advice="send the same request faster",
)
URI_TOO_LONG = Problem(
    414, "REQUEST_URI_TOO_LONG", "The URL is longer than 64 KiB.", advice="shorten it"
)
HEAD_TOO_LARGE = Problem(
    431,
    "REQUEST_HEADER_FIELDS_TOO_LARGE",
    "There are over 100 headers, or over 64 KiB of them.",
    advice="send fewer",
)
NOT_IMPLEMENTED = Problem(
    501,
    "NOT_IMPLEMENTED",
    "This method or transfer coding is not known here.",
    advice="use plain HTTP/1.1",
)


def problem_of(refusal: Refused) -> Problem:
    """Return the problem that is sent for a refusal."""
    message = str(refusal)
    if isinstance(refusal, errors.ValidationFailed):
        message = f"{message} {_first_problem(refusal)}"
    return Problem(
        refusal.status,
        refusal.code,
        message,
        refusal.details,
        retryable=refusal.retryable is True,
        retry_after_s=refusal.retry_after_s,
    )


def _first_problem(refusal: errors.ValidationFailed) -> str:
    """Name the first field and its problem, because many clients keep only the message.

    The refusal's own text lacks it, because the client chooses the name of an unknown field.
    """
    name, (problem, *_) = next(iter(refusal.details.items()))
    return f"{name}: {problem}"


def wrong_method(allowed: str) -> Problem:
    """Return the problem of a path that takes only the methods of an `Allow`."""
    return replace(WRONG_METHOD, message=f"This path takes only {allowed}.")


UNAVAILABLE = problem_of(errors.ServiceUnavailable())

_OF_STATUS = {
    problem.status: problem
    for problem in (
        BAD_REQUEST,
        UNKNOWN_PATH,
        WRONG_METHOD,
        TOO_LARGE,
        WRONG_MEDIA_TYPE,
        INTERNAL,
        UNAVAILABLE,
    )
}
# Any request may get these, whatever its operation; nearly all of them come from the server.
OF_EVERY_REQUEST = (
    BAD_REQUEST,
    TIMED_OUT,
    TOO_LARGE,
    URI_TOO_LONG,
    HEAD_TOO_LARGE,
    INTERNAL,
    NOT_IMPLEMENTED,
    UNAVAILABLE,
)
CODES = sorted(
    {*errors.REFUSALS} | {each.code for each in (*_OF_STATUS.values(), *OF_EVERY_REQUEST)}
)


def problem_of_http(error: HTTPException) -> Problem:
    """Return the problem for an error of the framework, without its text, which may quote input."""
    return problem_of_status(error.code or HTTPStatus.INTERNAL_SERVER_ERROR)


def problem_of_status(status: int) -> Problem:
    """Return the problem for a bare status: ours, or else one with the names of HTTP."""
    known = HTTPStatus(status)
    return _OF_STATUS.get(status) or Problem(status, known.name, f"{known.phrase}.")
