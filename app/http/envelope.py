"""The envelope of every JSON reply: success, data or error, and meta.

A reply is a struct: its fields are what is sent, and what the OpenAPI document says of them.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec
from flask import Response
from msgspec import UNSET, Meta, Struct, UnsetType

from app.http.problems import VALIDATION, Problem
from app.http.request_context import container, request_context

Data = TypeVar("Data")


def means(description: str | None = None, *, example: object = None, **schema: object) -> Meta:
    """Return what the OpenAPI document says of a field; `schema` are keywords of its own."""
    examples = None if example is None else [example]
    return Meta(description=description, examples=examples, extra_json_schema=schema)


Moment = Annotated[str, means(format="date-time")]


class ReplyMeta(Struct, kw_only=True):
    """What every reply says about itself."""

    timestamp: Annotated[
        Moment, means("When the reply was made (UTC).", example="2026-11-21T03:04:05.678Z")
    ]
    response_time_ms: Annotated[float, means("How long the service took.", example=12.3)]
    request_id: Annotated[
        str,
        means(
            "The X-Request-Id of the request, or the one that was made for it.",
            example="3f2b7a52-6c0e-4b5e-9d0e-0a4a7b8f4f11",
        ),
    ]
    stale: (
        Annotated[
            bool,
            means(
                "There when the data lack what has happened in the last seconds or longer.",
                enum=[True],
            ),
        ]
        | UnsetType
    ) = UNSET
    as_of: (
        Annotated[Moment, means("Beside `stale`: when they last lacked nothing.")] | UnsetType
    ) = UNSET


class Reply(Struct, Generic[Data], kw_only=True):
    """A reply that is a success; each subclass says in its docstring what its data are."""

    success: Annotated[bool, means(enum=[True])] = True
    data: Data
    meta: ReplyMeta


class ErrorDetail(Struct):
    """What went wrong."""

    code: Annotated[str, means("What happened, for programs; a code never changes its meaning.")]
    message: Annotated[str, means("The same, for people.")]
    details: (
        Annotated[
            dict[str, Any],
            means(
                "More about it, where there is more. `retryable` stands on 409, 429 and every 5xx; "
                "`reason` says why the network did not do something."
            ),
        ]
        | UnsetType
    ) = UNSET


class _Failure(Struct, kw_only=True):
    success: Annotated[bool, means(enum=[False])] = False
    error: ErrorDetail


class Error(_Failure, kw_only=True):
    """A reply that is no success."""

    meta: ReplyMeta


class ValidationProblem(_Failure, kw_only=True):
    """A reply to input that breaks a rule, in both shapes that clients know."""

    message: Annotated[str, means("The same as `error.message`.")] | UnsetType = UNSET
    errors: (
        Annotated[
            dict[str, list[str]], means("The same as `error.details`: field name to messages.")
        ]
        | UnsetType
    ) = UNSET
    meta: ReplyMeta


META: Final = ReplyMeta(
    timestamp="2026-11-21T03:04:05.678Z",
    response_time_ms=12.3,
    request_id="3f2b7a52-6c0e-4b5e-9d0e-0a4a7b8f4f11",
)


def format_time(moment: datetime) -> str:
    """Write a moment as ISO 8601 in UTC with milliseconds, such as `2026-11-21T03:04:05.678Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def success(
    data: object,
    status: int = 200,
    *,
    meta: ReplyMeta | Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Reply with data; `meta` is what the reply says about itself if that is not the usual."""
    told: Any = meta or reply_meta()
    if isinstance(meta, Mapping):
        told = {**msgspec.to_builtins(reply_meta()), **meta}
    return json_response(Reply(data=data, meta=told), status, headers)


def failure(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Reply with an error, and with `Retry-After` where trying again is of use."""
    body = failure_body(problem, reply_meta())
    return json_response(body, problem.status, {**problem.headers, **(headers or {})})


def failure_body(problem: Problem, meta: ReplyMeta) -> Error | ValidationProblem:
    """Return the body of an error; a validation error has both shapes that clients know."""
    error = ErrorDetail(problem.code, problem.message, problem.details_sent() or UNSET)
    if problem.code == VALIDATION:
        fields = dict(problem.details)
        return ValidationProblem(error=error, message=problem.message, errors=fields, meta=meta)
    return Error(error=error, meta=meta)


def json_response(
    body: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Reply with JSON that has no envelope of its own."""
    encoded = msgspec.json.encode(body)
    return Response(encoded, status, headers, content_type="application/json")


def reply_meta(*, stale: bool = False) -> ReplyMeta:
    """Return what the reply to this request says about itself; `stale` if its data are."""
    context = request_context()
    return ReplyMeta(
        timestamp=format_time(container().clock()),
        response_time_ms=context.elapsed_ms(),
        request_id=context.request_id,
        stale=context.stale or stale or UNSET,
        as_of=format_time(context.as_of) if context.stale and context.as_of else UNSET,
    )
