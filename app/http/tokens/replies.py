"""The replies of the token endpoint and its documents, as OAuth defines them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Struct

from app.http.edge.oauth_errors import OAuthError, OAuthRefused, oauth_body_of
from app.http.edge.problem_docs import documented
from app.http.edge.problems import Problem
from app.http.edge.replies import means

Url = Annotated[str, means(format="url")]


class Token(Struct, kw_only=True):
    """An access token (RFC 6749 §5.1)."""

    access_token: Annotated[str, means("Send it as Bearer token.")]
    expires_in: Annotated[int, means("Seconds.", example=3600)]
    token_type: Annotated[str, means(enum=["Bearer"])] = "Bearer"  # noqa: S105  # The scheme is no secret.
    scope: Annotated[str, means("The scopes that it carries.")]


class KeySet(Struct):
    """The public keys of tokens (RFC 7517 §5)."""

    keys: Annotated[Sequence[Mapping[str, Any]], means("One JWK each.")]


class ServerMetadata(Struct, kw_only=True):
    """What a client library asks for (RFC 8414 §2)."""

    issuer: Url
    token_endpoint: Url
    jwks_uri: Url
    grant_types_supported: list[str]
    response_types_supported: list[str]
    scopes_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    service_documentation: Url


TOKEN: Final = Token(
    access_token="eyJhbGciOiJSUzI1NiIsImtpZCI6Ii4uLiIsInR5cCI6ImF0K2p3dCJ9.e30.c2ln",  # noqa: S106  # An example that opens nothing.
    expires_in=3600,
    scope="lookup wallet",
)


def oauth_responses(
    refusals: Iterable[OAuthRefused], problems: Iterable[Problem]
) -> dict[int, dict[str, Any]]:
    """Return the responses of the token endpoint; its errors have no envelope."""
    grouped: dict[int, list[OAuthError]] = defaultdict(list)
    for refusal in refusals:
        grouped[refusal.status].append(OAuthError(refusal.code, str(refusal)))
    for problem in problems:
        grouped[problem.status].append(oauth_body_of(problem))
    return {
        status: documented(status, OAuthError, {body.error: body for body in bodies})
        for status, bodies in grouped.items()
    }
