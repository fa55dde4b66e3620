"""Conditional reads (RFC 9110 §13): a weak ETag over `data`, and 304 for who has it already."""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, Final

import msgspec
from flask import Response

from app.http.envelope import success
from app.http.request_context import current_request

ETAG_BYTES = 16
ETAG: Final = {"ETag": {"description": "A weak tag of `data`.", "schema": {"type": "string"}}}
NOT_MODIFIED: Final = {
    HTTPStatus.NOT_MODIFIED.value: {
        "description": "`data` is what the ETag of `If-None-Match` stands for."
    }
}


def conditional(data: object) -> Response:
    """Reply with data, or with 304."""
    encoded = msgspec.json.encode(data)
    return tagged(encoded, lambda: msgspec.Raw(encoded))


def tagged(
    state: bytes, data: Callable[[], Any], headers: Mapping[str, str] | None = None
) -> Response:
    """Reply with data that differ exactly when `state` does, or with 304; `headers` on both.

    The data are made only for who does not have them.
    """
    tag = blake2b(state, digest_size=ETAG_BYTES).hexdigest()
    if current_request().if_none_match.contains_weak(tag):
        response = Response(status=HTTPStatus.NOT_MODIFIED)
        response.headers.update(headers or {})
        del response.headers["Content-Type"]
    else:
        response = success(data(), headers=headers)
    response.set_etag(tag, weak=True)
    response.headers["Cache-Control"] = "private, no-cache"
    response.headers["Vary"] = "Authorization, X-Organization-Id"
    return response
