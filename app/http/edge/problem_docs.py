"""The error replies in the OpenAPI document, each with the example that we would send."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct, UnsetType

from app.http.edge import replies
from app.http.edge.media import JSON
from app.http.edge.problems import oauth_code
from domain.errors import NETWORK_REASONS, Refused
from projections.engine.shape import MORE_MAY_COME, Amount, Currency, means, one_of


class RetryDetails(Struct, kw_only=True):
    """Whether it helps to try again."""

    retryable: Annotated[
        bool,
        means("True: the same request may succeed after `Retry-After`. False: it fails again."),
    ]


class RetryErrorDetail(replies.Explanation[RetryDetails]):
    """What went wrong, and whether it helps to try again."""


class RetryError(replies.Failure[RetryErrorDetail]):
    """A reply that says whether it helps to try again."""


class PaymentDetails(Struct, kw_only=True):
    """What the wallet, or the limit of the month, lacks."""

    required: Annotated[Amount, means("What the request costs.")]
    available: Annotated[Amount | UnsetType, means("What the wallet holds.")] = UNSET
    limit: Annotated[
        Amount | UnsetType,
        means("Of `SPENDING_LIMIT`: what may be spent in a calendar month (UTC)."),
    ] = UNSET
    spent: Annotated[
        Amount | UnsetType, means("Of `SPENDING_LIMIT`: what has been spent in this month.")
    ] = UNSET
    currency: Currency


class PaymentErrorDetail(replies.Explanation[PaymentDetails]):
    """What the wallet cannot pay."""


class PaymentError(replies.Failure[PaymentErrorDetail]):
    """A reply to what the wallet cannot pay."""


class NetworkDetails(RetryDetails, kw_only=True):
    """Why the network did not do it, and what has been done and undone."""

    reason: Annotated[
        str | UnsetType,
        means("Why the network did not do it."),
        means(**one_of("NetworkReason", NETWORK_REASONS, MORE_MAY_COME)),
    ] = UNSET
    refunded: Annotated[Amount, means("What went back to the wallet.")] | UnsetType = UNSET
    removed: Annotated[list[UUID] | UnsetType, means("Activations that were removed.")] = UNSET
    added: Annotated[list[UUID] | UnsetType, means("Activations that were added.")] = UNSET


class NetworkErrorDetail(replies.Explanation[NetworkDetails]):
    """What the network did not do."""


class NetworkError(replies.Failure[NetworkErrorDetail]):
    """A reply to what the network did not do."""


SHAPES: Final[Mapping[int, type[Struct]]] = {
    402: PaymentError,
    409: RetryError,
    422: replies.ValidationProblem,
    429: RetryError,
    500: RetryError,
    501: RetryError,
    502: NetworkError,
    503: RetryError,
}
ERRORS: Final[Sequence[type[Struct]]] = (replies.Error, replies.OAuthError, *SHAPES.values())
RETRY_AFTER = replies.header(
    "Retry-After",
    "Seconds to wait before the same request is sent again.",
    type="integer",
    minimum=1,
)
CHALLENGE = replies.header(
    "WWW-Authenticate",
    "What the client should present: a token, one with another scope, or its credentials "
    "(RFC 6750 §3, RFC 7617 §2).",
)


def error_responses(
    refused: Iterable[Refused], *, is_token: bool = False
) -> dict[int, dict[str, Any]]:
    """Return the responses for these errors by status; of a code the last one is its example.

    `is_token`: they are those of the token endpoint.
    """
    grouped: dict[int, dict[str, Struct]] = defaultdict(dict)
    for each in refused:
        if is_token:
            grouped[each.status][oauth_code(each)] = replies.oauth_body(each)
        else:
            grouped[each.status][each.code] = replies.failure_body(each, replies.META)
    responses = {}
    for status, bodies in sorted(grouped.items()):
        shape = replies.OAuthError if is_token else SHAPES.get(status, replies.Error)
        again = RETRY_AFTER if status in {409, 429, 502, 503} else {}
        examples = {code: {"value": msgspec.to_builtins(body)} for code, body in bodies.items()}
        codes = ", ".join(f"`{code}`" for code in bodies)
        responses[status] = {
            "description": f"{HTTPStatus(status).phrase}: {codes}.",
            # In the schema they would have generators make a type for each response.
            "x-error-codes": [*bodies],
            "headers": CHALLENGE if status in {401, 403} else again,
            "content": {JSON: {"schema": shape.__name__, "examples": examples}},
        }
    return responses
