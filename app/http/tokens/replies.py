"""The replies of the token endpoint and its documents, as OAuth defines them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Struct

from app.http.edge.oauth_errors import OAuthError, OAuthRefused, oauth_body_of
from app.http.edge.problem_docs import documented
from app.http.edge.problems import Problem
from app.http.edge.replies import NAME, means

Url = Annotated[str, means(format="uri")]
Jwk = Annotated[
    Mapping[str, Any], means("A JWK (RFC 7517 §4).", additionalProperties=True, **{NAME: "Jwk"})
]


class Token(Struct, kw_only=True):
    """An access token (RFC 6749 §5.1)."""

    access_token: Annotated[str, means("Send it as Bearer token.")]
    expires_in: Annotated[int, means("Seconds.", example=3600)]
    token_type: Annotated[str, means(enum=["Bearer"])] = "Bearer"  # noqa: S105  # The scheme is no secret.
    scope: Annotated[str, means("The scopes that it carries.")]


class KeySet(Struct):
    """The public keys of tokens (RFC 7517 §5)."""

    keys: Annotated[Sequence[Jwk], means("One for each key that is good.")]


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
TOKEN_FORM: Final = {
    "grant_type": "client_credentials",
    "client_id": "cl_5b0e6a3c9d1f5c478f5e2f4a7c9b1d60",
    "client_secret": "the-secret-that-was-shown-once",
    "scope": TOKEN.scope,
}
KEY_SET: Final = KeySet(
    keys=[
        {
            "kty": "EC",
            "use": "sig",
            "alg": "ES256",
            "kid": "q7Zk3m",
            "crv": "P-256",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        }
    ]
)
SERVER_METADATA: Final = ServerMetadata(
    issuer="https://api.partner.test",
    token_endpoint="https://api.partner.test/auth/token",  # noqa: S106  # The path of the endpoint, no secret.
    jwks_uri="https://api.partner.test/.well-known/jwks.json",
    grant_types_supported=["client_credentials"],
    response_types_supported=[],
    scopes_supported=["lookup", "plans", "links", "wallet", "webhooks"],
    token_endpoint_auth_methods_supported=["client_secret_basic", "client_secret_post"],
    service_documentation="https://api.partner.test/docs",
)


def oauth_responses(
    refusals: Iterable[OAuthRefused], problems: Iterable[Problem]
) -> dict[int, dict[str, Any]]:
    """Return the responses of the token endpoint; its errors have no envelope."""
    grouped: dict[int, list[OAuthError]] = defaultdict(list)
    for problem in problems:
        grouped[problem.status].append(oauth_body_of(problem))
    for refusal in refusals:  # Added last, because the last body of a code becomes its example.
        grouped[refusal.status].append(OAuthError(refusal.code, str(refusal)))
    return {
        status: documented(status, OAuthError, {body.error: body for body in bodies})
        for status, bodies in grouped.items()
    }
