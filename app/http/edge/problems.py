"""Every error as it is sent: those of HTTP itself and of the token endpoint stand here.

All others stand in `domain/errors.py`. An error is a `Refused`, whoever sends it.
"""

from http import HTTPStatus

from domain import errors

SOON_S = 1  # For what ends by itself, such as a full queue or another request with the same key.
LATER_S = 5  # For an outage; the lookup provider is probed this often.

TOKEN_PATH = "/auth/token"  # noqa: S105 - The path of the endpoint, no secret.
# Its codes (RFC 6749 §5.2) with their statuses; an error of HTTP itself keeps its own status.
OAUTH_STATUS = {
    "invalid_request": 400,
    "invalid_client": 401,
    "invalid_scope": 400,
    "unsupported_grant_type": 400,
    "slow_down": 429,
    "server_error": 500,
}
UNCACHED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
BASIC = {"WWW-Authenticate": 'Basic realm="token", charset="UTF-8"'}


class Problem(errors.Refused):
    """An error of HTTP itself; `cause` and `advice` are those of the guide.

    Its code and message are those that Python has for its status, unless they are given.
    """

    retryable = False

    def __init__(
        self, status: int, message: str = "", cause: str = "", advice: str = "", code: str = ""
    ) -> None:
        known = HTTPStatus(status)
        super().__init__(message or f"{known.phrase}.")
        self.status, self.code, self.message = status, code or known.name, str(self)
        self.cause, self.advice = cause, advice


BAD_REQUEST = Problem(
    400,
    "The request cannot be read; a body must be one JSON value in UTF-8, no name twice.",
    "the body is not JSON, or the request not HTTP/1.1; the message says which",
    "correct the body",
)
UNKNOWN_PATH = Problem(404, "There is nothing at this path.")
WRONG_METHOD = Problem(
    405,
    "This path does not take this method.",
    "the path does not take the method; `Allow` names what it takes",
    "use one of these",
)
TOO_LARGE = Problem(
    413,
    "The body is larger than 1 MiB.",
    advice="send less in one request",
    code="PAYLOAD_TOO_LARGE",
)
WRONG_MEDIA_TYPE = Problem(
    415,
    "Send the body as JSON, not compressed, with Content-Type: application/json.",
    "the body is not JSON",
    "send `Content-Type: application/json`, not compressed",
)
INTERNAL = Problem(
    500,
    "Something went wrong on our side.",
    "a fault of ours",
    "tell us the `request_id`",
    "INTERNAL_ERROR",
)
UNAVAILABLE = errors.ServiceUnavailable()

# The server sends these itself, does not pass the request on, and closes the connection.
BROKEN_HEAD = Problem(400, "The first line or a header is not as HTTP has it (RFC 9112).")
NO_HOST = Problem(400, "The header Host is missing (RFC 9112, section 3.2).")
MANY_HOSTS = Problem(400, "There is more than one header Host (RFC 9112, section 3.2).")
ODD_HOST = Problem(400, "The header Host is no name or address, perhaps with a port (RFC 9112).")
ODD_TARGET = Problem(400, "The target is neither a path nor a URL of http or https (RFC 9112).")
BROKEN_BODY = Problem(400, "The chunks of the body are not as HTTP has them (RFC 9112).")
TIMED_OUT = Problem(
    408, "The request was not complete in time.", advice="send the same request faster"
)
URI_TOO_LONG = Problem(
    414, "The URL and headers are over 64 KiB.", advice="shorten it", code="REQUEST_URI_TOO_LONG"
)
HEAD_TOO_LARGE = Problem(
    431, "There are over 100 headers, or over 64 KiB of them.", advice="send fewer"
)
NOT_IMPLEMENTED = Problem(
    501, "This method or transfer coding is not known here.", advice="use plain HTTP/1.1"
)

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
OF_STATUS = {
    each.status: each for each in (*OF_EVERY_REQUEST, UNKNOWN_PATH, WRONG_METHOD, WRONG_MEDIA_TYPE)
}
CODES = sorted({*errors.REFUSALS, *(each.code for each in OF_STATUS.values())})


def retry_after(error: errors.Refused) -> dict[str, str]:
    """Return the header that says when to try again; none if that would not help."""
    if not error.retryable:
        return {}
    later = error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return {"Retry-After": str(error.retry_after_s or (LATER_S if later else SOON_S))}


class OAuthRefused(errors.Refused):
    """Raised when a token is refused; its text is the `error_description`, in ASCII."""

    def __init__(self, message: str, code: str = "invalid_request") -> None:
        super().__init__(message)
        self.code, self.status = code, OAUTH_STATUS[code]


def oauth_code(error: errors.Refused) -> str:
    """Return the code that an error has at the token endpoint."""
    if isinstance(error, OAuthRefused):
        return error.code
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "server_error"
    return "slow_down" if error.status == errors.RateLimited.status else "invalid_request"
