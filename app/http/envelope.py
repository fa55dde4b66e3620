"""The envelope of every JSON reply: success, data or error, and meta."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from flask import Response

from app.http.problems import VALIDATION, Problem
from app.http.request_context import container, request_context


def format_time(moment: datetime) -> str:
    """Write a moment as ISO 8601 in UTC with milliseconds, such as `2026-11-21T03:04:05.678Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def success(
    data: Any,
    status: int = 200,
    *,
    meta: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Reply with data; `meta` is added to what every reply says about itself."""
    return json_response(
        {"success": True, "data": data, "meta": {**_meta(), **(meta or {})}}, status, headers
    )


def failure(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Reply with an error, and with `Retry-After` where trying again is of use."""
    body = failure_body(problem, _meta())
    return json_response(body, problem.status, {**problem.headers, **(headers or {})})


def failure_body(problem: Problem, meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of an error; a validation error has both shapes that clients know."""
    body: dict[str, Any] = {"success": False, "error": problem.error()}
    if problem.code == VALIDATION:
        body |= {"message": problem.message, "errors": dict(problem.details)}
    return body | {"meta": dict(meta)}


def json_response(
    body: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Reply with JSON that has no envelope of its own."""
    encoded = msgspec.json.encode(body)
    return Response(encoded, status, headers, content_type="application/json")


def _meta() -> dict[str, Any]:
    context = request_context()
    meta: dict[str, Any] = {
        "timestamp": format_time(container().clock()),
        "response_time_ms": context.elapsed_ms(),
        "request_id": context.request_id,
    }
    if context.stale:
        meta["stale"] = True
        if context.as_of is not None:
            meta["as_of"] = format_time(context.as_of)
    return meta
