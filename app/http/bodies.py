"""Request bodies: at most 1 MiB of strict JSON, or none."""

import json
from typing import Any

from webargs.core import is_json
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType

from app.http.request_context import current_request

BODY_BYTES_MAX = 1024 * 1024


def check_body() -> None:
    """Read the body; refuse one that is too large or not declared as JSON. None at all is fine."""
    request, body = current_request(), _sent()
    if len(body) >= BODY_BYTES_MAX and request.content_length is None:
        raise RequestEntityTooLarge  # Of a body without a length no more than that is read.
    if not body:
        return
    encoding = request.headers.get("Content-Encoding", "identity")
    if not is_json(request.mimetype) or encoding != "identity":
        raise UnsupportedMediaType


def read_json() -> Any:
    """Return the parsed body, or an empty object when there is no body."""
    data = _sent()
    return parse_json(data) if data else {}


def _sent() -> bytes:
    """Return the body; werkzeug takes its time to find out that there is none."""
    request = current_request()
    environ = request.environ
    if not environ.get("CONTENT_LENGTH") and "wsgi.input_terminated" not in environ:
        return b""
    return request.get_data()


def parse_json(data: bytes) -> Any:
    """Parse RFC 8259 JSON in UTF-8; BadRequest for anything else.

    Refused too: NaN, infinities, nesting without end, and a member that comes twice, since two
    readers of such an object may see different values.
    """
    try:
        return json.loads(data.decode(), object_pairs_hook=_members, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise BadRequest from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    "".join(members).encode()  # A lone surrogate cannot be named in a reply: a ValueError.
    return members


def _no_constant(_: str) -> None:
    raise ValueError
