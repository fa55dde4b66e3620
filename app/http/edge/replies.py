"""The envelope of every JSON reply: success, data or error, and meta.

A reply is a struct; its fields are what is sent and what the OpenAPI document describes.
Conditional reads (RFC 9110 §13) have a weak ETag over `data`, and get 304 if the client has it
already.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import blake2b
from http import HTTPStatus
from types import new_class
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec
from flask import Response
from msgspec import UNSET, Struct, UnsetType

from app.bootstrap.container import Container
from app.http.edge.problems import CODES, OAUTH_STATUS, oauth_code
from app.http.edge.request import CURRENT, REQUEST_ID, UUID_FORM, Given, current_request
from app.http.edge.schemas import example_of
from domain.errors import Refused, ValidationFailed
from domain.lookups.single import LookupResult, PendingLookup
from projections.engine.freshness import wait_until_projected
from projections.engine.shape import MORE_MAY_COME, NAME, Moment, format_time, means, one_of

Data = TypeVar("Data")
Details = TypeVar("Details")
Explained = TypeVar("Explained")

LATER = "app.later"  # Where the gateway finds what a reply may wait for.
IGNORED_MAX = 10  # Parameters of a query that a reply names.

Mcc = Annotated[
    str, means("Mobile Country Code (ITU-T E.212).", example="208", pattern="^[0-9]{3}$")
]
Mnc = Annotated[
    str, means("Mobile Network Code (ITU-T E.212).", example="01", pattern="^[0-9]{2,3}$")
]


class CommonMeta(Struct, kw_only=True):
    """What all replies say about themselves."""

    timestamp: Annotated[
        Moment, means("When the reply was made (UTC).", example="2026-11-21T03:04:05.678Z")
    ]
    response_time_ms: Annotated[float, means("How long the service took.", example=12.3)]
    request_id: Annotated[
        str,
        means("The X-Request-Id of the request, or the one that was made for it."),
        means(example="3f2b7a52-6c0e-4b5e-9d0e-0a4a7b8f4f11"),
    ]
    stale: Annotated[
        bool | UnsetType,
        means("There when the data lack what has happened in the last seconds or longer."),
        means(enum=[True]),
    ] = UNSET
    ignored: Annotated[
        list[str] | UnsetType,
        means(
            "There when the query has parameters that say nothing here: the names of the first "
            f"{IGNORED_MAX}."
        ),
    ] = UNSET


class ReplyMeta(CommonMeta, kw_only=True):
    """What a reply says about itself."""

    as_of: Annotated[
        Moment | UnsetType, means("Beside `stale`: when they last lacked nothing.")
    ] = UNSET


class Success(Struct, Generic[Data], kw_only=True):
    """A reply that is a success; the docstring of its type says what its data are."""

    success: Annotated[bool, means(enum=[True])] = True
    data: Data


class Reply(Success[Data], Generic[Data], kw_only=True):
    """A success that says of itself what most do."""

    meta: ReplyMeta


class Explanation(Struct, Generic[Details]):
    """What went wrong; each kind of failure has its own details."""

    code: Annotated[
        str,
        means("What happened, for programs; a code never changes its meaning."),
        means(**one_of("ErrorCode", CODES, MORE_MAY_COME)),
    ]
    message: Annotated[str, means("The same, for people.")]
    details: Details


class ErrorDetail(Explanation[dict[str, Any] | UnsetType]):
    """What went wrong."""

    details: Annotated[
        dict[str, Any] | UnsetType,
        means("More about it, where there is more."),
        means(additionalProperties=True, **{NAME: "ErrorDetails"}),
    ] = UNSET


class Failure(Struct, Generic[Explained], kw_only=True):
    """A reply that is no success; the docstring of each subclass says which."""

    success: Annotated[bool, means(enum=[False])] = False
    error: Explained
    meta: ReplyMeta


class Error(Failure[ErrorDetail]):
    """A reply that is no success."""


FieldProblems = Annotated[
    dict[str, list[str]] | UnsetType, means("Field name to messages.", **{NAME: "FieldProblems"})
]


class ValidationErrorDetail(Explanation[FieldProblems]):
    """What is wrong with the input."""

    details: FieldProblems = UNSET


class ValidationProblem(Struct, kw_only=True):
    """A reply to input that breaks a rule, in both shapes that clients know."""

    success: Annotated[bool, means(enum=[False])] = False
    error: ValidationErrorDetail
    message: Annotated[str | UnsetType, means("The same as `error.message`.")] = UNSET
    errors: Annotated[FieldProblems, means("The same as `error.details`.")] = UNSET
    meta: ReplyMeta


class OAuthError(Struct):
    """A refused token request (RFC 6749 §5.2)."""

    error: Annotated[str, means(**one_of("OAuthErrorCode", OAUTH_STATUS, MORE_MAY_COME))]
    error_description: Annotated[str, means("For people.")]


META: Final = ReplyMeta(**example_of(ReplyMeta))


def example(
    says: str,
    data: Any,
    called: str = "",
    /,
    *,
    of: Any = None,
    meta: type[ReplyMeta] = ReplyMeta,
    **facts: object,
) -> Reply[Any]:
    """Return a reply as the document shows it: with data, or with those of a type but for `facts`.

    Its type is made here, is described by `says`, and is `called` like that of the data unless it
    is said. `of` is the type of the data where these are a list.
    """
    kind = of or (type(data) if isinstance(data, Struct) else data)
    shown = example_of(kind, **facts) if kind is data else data
    made = _type_of_reply(called or f"{kind.__name__}Reply", says, kind, meta)
    return made(data=shown, meta=example_of(meta))


@cache  # So that replies which are alike have one type.
def _type_of_reply(name: str, says: str, of: Any, meta: type[ReplyMeta]) -> type[Reply[Any]]:
    fields = {} if meta is ReplyMeta else {"meta": meta}
    parts = {"__doc__": says, "__module__": __name__, "__annotations__": fields}
    return new_class(name, (Reply[of],), {"kw_only": True}, lambda body: body.update(parts))


def time_or_null(moment: datetime | None) -> str | None:
    """Format a moment as `format_time` does; None stays None, which is sent as null."""
    return None if moment is None else format_time(moment)


class PageMeta(Struct):
    """Where a page stands in its list."""

    total: Annotated[int, means("Items of all pages.")]
    per_page: Annotated[int, means("Items of a full page.", example=50)]
    current_page: Annotated[int, means("This page.")]
    last_page: Annotated[int, means("The last page, at least 1.")]


class Page(Struct, Generic[Data]):
    """One page of a list."""

    data: Sequence[Data]
    meta: PageMeta


def part_of(query: Mapping[str, Any]) -> slice:
    """Return which part of its list the page is that a query asks for."""
    start, per_page = (query["page"] - 1) * query["per_page"], query["per_page"]
    return slice(start, start + per_page)


def filters_of(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a query asks for besides a page."""
    return {name: query[name] for name in query.keys() - {"page", "per_page"}}


def show_page(items: Sequence[Data], total: int, query: Mapping[str, Any]) -> Page[Data]:
    """Return the `data` of a page; a page past the end is empty, `last_page` is at least 1."""
    per_page: int = query["per_page"]
    return Page(items, PageMeta(total, per_page, query["page"], max(1, -(-total // per_page))))


class Answer(Struct):
    """What an operation answers where that is more than data and 200.

    `data` may also be a whole reply with a `meta` of its own.
    `later`: the gateway may wait for another answer, where it can do so without a thread.
    """

    data: object
    status: int = 200
    headers: Mapping[str, str] | None = None
    later: Any = None


@dataclass(frozen=True, slots=True)
class Commit:
    """What a lookup returns, which ends with a commit, and `answer`, what to answer after it.

    A thread calls `run`, which waits. The loop calls `prepare`, which raises WouldBlock, with
    nothing done, where it would have to wait before the commit.
    """

    run: Callable[[], LookupResult]
    prepare: Callable[[], PendingLookup]
    answer: Callable[[LookupResult], Answer]


Written = tuple[object, int, Mapping[str, str] | None]  # Body, status, headers of its own.


def respond(answer: object, *, is_tagged: bool = False) -> Response:
    """Send what an operation has returned: data, an `Answer`, or a response of its own."""
    if isinstance(answer, Response):
        return answer
    if is_tagged:
        encoded = msgspec.json.encode(answer)
        return tagged(encoded, lambda: msgspec.Raw(encoded))
    if isinstance(answer, Commit):
        answer = answer.answer(answer.run())
    if isinstance(answer, Answer) and answer.later is not None:
        CURRENT.get().environ[LATER] = answer.later
    return json_response(*written(answer))


def written(answer: object) -> Written:
    """Return the reply to what an operation has returned: data or an `Answer`."""
    said = answer if isinstance(answer, Answer) else Answer(answer)
    body = said.data if isinstance(said.data, Success) else Reply(data=said.data, meta=reply_meta())
    return body, said.status, said.headers


def failure_body(error: Refused, meta: ReplyMeta) -> Error | ValidationProblem:
    """Return the body of an error; a validation error comes in both shapes that clients know."""
    if not isinstance(error, ValidationFailed):
        return Error(error=error_detail(error), meta=meta)
    # Many clients keep only the message, so it names the first field and its problem. The text of
    # the error does not, because the client chooses the name of an unknown field.
    name, (problem, *_) = next(iter(error.details.items()))
    message = f"{error} {name}: {problem}"
    detail = ValidationErrorDetail(error.code, message, error.details)
    return ValidationProblem(error=detail, message=message, errors=error.details, meta=meta)


def error_detail(error: Refused) -> ErrorDetail:
    """Return what went wrong; for some statuses the details say whether to try again."""
    details = dict(error.details)
    if error.status in {409, 429} or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        details["retryable"] = error.retryable is True
    return ErrorDetail(error.code, str(error), details or UNSET)


def oauth_body(error: Refused) -> OAuthError:
    """Return the body of an error at the token endpoint, which has no envelope."""
    return OAuthError(oauth_code(error), str(error))


def json_response(
    body: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(msgspec.json.encode(body), status, headers, content_type="application/json")


def wait_for(parts: Container, name: str) -> bool:
    """Wait for a read model to reach what the caller may know; tell whether it did.

    If it stays behind, its age is noted.
    """
    if wait_until_projected(parts.source, [name]):
        return True
    mark_stale(parts, name)
    return False


def mark_stale(parts: Container, name: str) -> None:
    """Mark the reply as stale if the read model that it shows is."""
    context = CURRENT.get()
    context.stale, context.as_of = parts.freshness.is_stale(name)


def reply_meta() -> ReplyMeta:
    context = CURRENT.get()
    seen_at = context.as_of if context.stale else None
    as_of = UNSET if seen_at is None else format_time(seen_at)
    return ReplyMeta(**common_meta(context), as_of=as_of)


def common_meta(given: Given[Any]) -> dict[str, Any]:
    return {
        "timestamp": format_time(given.parts.clock()),
        "response_time_ms": given.elapsed_ms(),
        "request_id": given.request_id,
        "stale": given.stale or UNSET,
        "ignored": given.unknown_parameters(IGNORED_MAX) or UNSET,
    }


def header(name: str, says: str, **schema: object) -> dict[str, Any]:
    """Return what the document says of a header; it is a text unless `schema` names a type."""
    return {name: {"description": says, "schema": {"type": "string", **schema}}}


# What the document says once of what all send, and of what all replies have.
PARAMETERS: Final = {
    **header(  # No pattern, because nothing is refused for it.
        "X-Request-Id",
        "An id of your own (1–128 letters, digits and `._~:/@=+-`, but no phone number, no ICCID, "
        "no secret and no token). It is sent back, stored with what the request causes, and stands "
        "on our log lines. Another one is replaced.",
    ),
    **header(  # With the format `uuid` a generated client sends an object, no text, and fails.
        "X-Organization-Id",
        "The organization to act for. Only read for approved machine-to-machine clients, whose "
        "tokens name no organization.",
        pattern=f"^{UUID_FORM}$",
    ),
    **header(
        "If-None-Match",
        "The `ETag` of a reply that you have: while it stands, the reply is a 304 without a body.",
    ),
}
HEADERS: Final = {
    **header(
        "X-Request-Id",
        "The id of the request: yours, or one that we have made.",
        pattern=REQUEST_ID,
    ),
    **header(
        "RateLimit-Policy",
        "Where your organization has a rate limit: `q` requests within `w` seconds "
        "(draft-ietf-httpapi-ratelimit-headers).",
        pattern='^"default";q=[0-9]+;w=60$',
    ),
    **header(
        "RateLimit",
        "Beside it: `r` more requests may come, and in `t` seconds all of them.",
        pattern='^"default";r=[0-9]+;t=[0-9]+$',
    ),
}
HEADERS["X-Request-Id"]["required"] = True
for name, parameter in PARAMETERS.items():
    parameter |= {"in": "header", "name": name}
LOCATION: Final = header("Location", "Where to read what was made.", format="uri-reference")
REPLAYED: Final = {"Idempotency-Replayed": "true"}
IDEMPOTENCY_REPLAYED: Final = header(
    "Idempotency-Replayed",
    "`true` when this is the outcome of an earlier request with the key.",
    enum=["true"],
)


def replay_headers(replayed: bool) -> dict[str, str]:  # noqa: FBT001 - As a command has returned it.
    """Return the headers of an outcome; `replayed`: an earlier request with the key had it."""
    return REPLAYED if replayed else {}


ETAG_BYTES = 16
ETAG: Final = header(
    "ETag", "A weak tag of `data`; send it back as `If-None-Match`.", pattern='^W/"[0-9a-f]{32}"$'
)
NOT_MODIFIED: Final = {"description": "`data` is what the ETag of `If-None-Match` stands for."}


def tagged(state: bytes, data: Callable[[], Any], headers: Mapping[str, str] = {}) -> Response:
    """Reply with data, or with 304 if the client has them; both have `headers`.

    `state` changes exactly when the data do. `data` returns them, and is called only if the client
    lacks them.
    """
    tag = blake2b(state, digest_size=ETAG_BYTES).hexdigest()
    if current_request().if_none_match.contains_weak(tag):
        response = Response(status=HTTPStatus.NOT_MODIFIED)
        response.headers.update(headers)
        del response.headers["Content-Type"]
    else:
        response = respond(Answer(data(), headers=headers))
    response.set_etag(tag, weak=True)
    response.headers["Cache-Control"] = "private, no-cache"
    # Also on a 304, because nobody knows yet whether the reply would be long enough to compress.
    response.headers["Vary"] = "Authorization, X-Organization-Id, Accept-Encoding"
    return response
