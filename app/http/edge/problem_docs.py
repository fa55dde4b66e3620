"""The error replies in the OpenAPI document, each with the example that we would send."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from msgspec import Struct

from app.http.edge.input import SCHEMA_REF
from app.http.edge.oauth_errors import OAuthError
from app.http.edge.problems import VALIDATION, Problem
from app.http.edge.replies import META, Error, ValidationProblem, failure_body

ERRORS: Final = (Error, ValidationProblem, OAuthError)
RETRY_AFTER = {
    "Retry-After": {
        "description": "Seconds to wait before the same request is sent again.",
        "schema": {"type": "integer"},
    }
}
CHALLENGE = {
    "WWW-Authenticate": {
        "description": "What the client should present (RFC 6750 §3, RFC 7617 §2).",
        "schema": {"type": "string"},
    }
}


def error_responses(problems: Iterable[Problem]) -> dict[int, dict[str, Any]]:
    """Return the responses for these problems by status, with an example for each code."""
    grouped: dict[int, list[Problem]] = defaultdict(list)
    for problem in problems:
        grouped[problem.status].append(problem)
    return {status: _response(status, group) for status, group in sorted(grouped.items())}


def _response(status: int, problems: list[Problem]) -> dict[str, Any]:
    schema = ValidationProblem if any(each.code == VALIDATION for each in problems) else Error
    bodies = {each.code: failure_body(each, META) for each in problems}
    return documented(status, schema, bodies)


def documented(status: int, schema: type[Struct], bodies: Mapping[str, Struct]) -> dict[str, Any]:
    """Return one response; `bodies` are examples by code."""
    headers: dict[str, Any] = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers |= CHALLENGE
    if status in {409, 429, 502, 503}:
        headers |= RETRY_AFTER
    examples = {code: {"value": msgspec.to_builtins(body)} for code, body in bodies.items()}
    reference = {"$ref": SCHEMA_REF.format(name=schema.__name__)}
    codes = ", ".join(f"`{code}`" for code in bodies)
    return {
        "description": f"{HTTPStatus(status).phrase}: {codes}.",
        **({"headers": headers} if headers else {}),
        "content": {"application/json": {"schema": reference, "examples": examples}},
    }
