"""Access tokens by client credentials (OAuth 2.0).

And the documents that verify tokens, and that lead to them.
"""

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from flask import Response
from marshmallow import Schema, fields
from msgspec import Struct

from app.http.edge.input import Text, is_packed
from app.http.edge.operation import Group, Shown
from app.http.edge.problem_docs import error_responses
from app.http.edge.problems import OF_EVERY_REQUEST, TOKEN_PATH, UNCACHED, OAuthRefused, Problem
from app.http.edge.replies import json_response
from app.http.edge.request import CURRENT, Given, caller_address, current_request, reached, repeated
from app.http.edge.schemas import example_of
from domain.accounts.organization import SCOPES, ApiClient
from domain.errors import NotFound, RateLimited
from projections.engine.shape import NAME, means

Jwk = Annotated[
    Mapping[str, Any],
    means(
        "A JWK (RFC 7517 §4).",
        example={
            "kty": "EC",
            "use": "sig",
            "alg": "ES256",
            "kid": "q7Zk3m",
            "crv": "P-256",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        },
        additionalProperties=True,
        **{NAME: "Jwk"},
    ),
]
Url = Annotated[str, means(format="uri")]
JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6Ii4uLiIsInR5cCI6ImF0K2p3dCJ9.e30.c2ln"  # It opens nothing.


class Token(Struct, kw_only=True):
    """An access token (RFC 6749 §5.1)."""

    access_token: Annotated[str, means("Send it as Bearer token.", example=JWT)]
    expires_in: Annotated[int, means("Seconds.", example=3600)]
    token_type: Annotated[str, means(enum=["Bearer"])] = "Bearer"  # noqa: S105  # The scheme is no secret.
    scope: Annotated[str, means("The scopes that it carries.", example="lookup wallet")]


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


TOKEN: Final = Token(**example_of(Token))
TOKEN_FORM: Final = {
    "grant_type": "client_credentials",
    "client_id": "cl_5b0e6a3c9d1f5c478f5e2f4a7c9b1d60",
    "client_secret": "the-secret-that-was-shown-once",
    "scope": TOKEN.scope,
}
KEY_SET: Final = KeySet(**example_of(KeySet))

FORM = "application/x-www-form-urlencoded"
FIELDS_MAX = 32
FORM_BYTES_MAX = 64 * 1024  # As much as its header may hold; a megabyte takes long to decode.
NOT_A_FORM = f"The body must be a form ({FORM})."
NO_CREDENTIALS = "No client credentials: send client_id and client_secret, or HTTP Basic."


def read_form() -> dict[str, str]:
    """Return the parameters of the body; one without a value counts as omitted (RFC 6749 §3.2)."""
    request = current_request()
    body = request.get_data()
    if body and request.is_json:
        raise OAuthRefused(NOT_A_FORM)
    if body and (request.mimetype != FORM or is_packed()):
        raise Problem(415, NOT_A_FORM)
    if len(body) > FORM_BYTES_MAX:
        raise OAuthRefused("The form is longer than 64 KiB.")
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise OAuthRefused("The form cannot be read.") from None
    form = dict(pairs)
    if len(form) != len(pairs):
        raise OAuthRefused("A parameter is given more than once.")
    return {name: value for name, value in form.items() if value}


def read_credentials(form: dict[str, str]) -> tuple[str, str]:
    """Return client and secret, of the header or of the form; both at once are refused."""
    basic = _read_basic()
    if basic is None:
        client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
    elif "client_secret" in form or form.get("client_id", basic[0]).strip() != basic[0]:
        raise OAuthRefused("Client credentials are given in two ways at once.")
    else:
        client_id, secret = basic
    client_id, secret = client_id.strip(), secret.strip()
    if not client_id or not secret:
        raise OAuthRefused(NO_CREDENTIALS, "invalid_client")
    return client_id, secret


def _read_basic() -> tuple[str, str] | None:
    """Return user and password of HTTP Basic, each form-decoded; None without the header."""
    scheme, _, encoded = current_request().headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    with suppress(ValueError):  # Refused below, without repeating what was sent.
        parts = b64decode(encoded.strip(), validate=True).decode().partition(":")
        client_id, colon, secret = (unquote_plus(it, errors="strict").strip() for it in parts)
        if colon:
            return client_id, secret
    raise OAuthRefused("The Basic credentials cannot be read.", "invalid_client")


class TokenForm(Schema):
    """A token request (RFC 6749 §4.4.2)."""

    grant_type = fields.String(required=True, metadata={"enum": ["client_credentials"]})
    client_id = Text("Unless HTTP Basic carries it.")
    client_secret = Text("Unless HTTP Basic carries it.")
    scope = Text(
        "Scopes separated by spaces; without it, all that the client has.", examples=["lookup"]
    )


GRANT_TYPE = "client_credentials"
NO_GRANT_TYPE = "The parameter grant_type is missing."
OTHER_GRANT_TYPE = f"Only {GRANT_TYPE} is supported."
WRONG = "The client is unknown, or its secret is wrong."
TOO_MANY_WRONG = "Too many wrong secrets from this address; wait before the next attempt."
NOT_GRANTED = "The scope {} is not granted to this client. It has, with spaces between: {}."
_UNSAID = re.compile(r"[^!#-\[\]-~]", re.ASCII)  # What no `error_description` may hold.


def _authenticate(given: Given[None], client_id: str, secret: str) -> ApiClient:
    """Return the client; an unknown or revoked client and a wrong secret give the same refusal.

    The client is read from the log itself, so new clients and changes take effect at once.
    """
    parts = given.parts
    address = caller_address(given.environ, parts.settings.trusted_proxies)
    # Hashed, so that the store does not hold what was sent.
    counted = _hash(f"{address}\0{client_id}"), _hash(address)
    wait_s = parts.throttle.wait_s(*counted)
    if wait_s:
        raise RateLimited(TOO_MANY_WRONG, retry_after_s=wait_s)
    client = parts.log.find(ApiClient, ApiClient.id_of(client_id))
    hashes = client.hashes_at(parts.clock()) if client is not None and not client.revoked else []
    used = parts.secret_hasher.matches(secret, hashes)
    if used is None or client is None:
        parts.throttle.failed(*counted)
        raise OAuthRefused(WRONG, "invalid_client")
    if parts.secret_hasher.is_outdated(used):
        new, cause = parts.secret_hasher.hash(secret), given.cause()
        parts.log.update(client, lambda newest: newest.rehash_secret(used, new, cause))
    return client


def _hash(subject: str) -> str:
    return sha256(subject.encode()).hexdigest()


def _narrow(client: ApiClient, requested: str) -> list[str]:
    """Return the `requested` scopes; without any, all that the client has."""
    wanted = requested.split()
    for other in (each for each in wanted if each not in client.scopes):
        named = _UNSAID.sub("?", repeated(other))
        granted = " ".join(client.scopes)
        raise OAuthRefused(NOT_GRANTED.format(named, granted), "invalid_scope")
    return [scope for scope in client.scopes if not wanted or scope in wanted]


METADATA_PATH = "/.well-known/oauth-authorization-server"
KEYS_PATH = "/.well-known/jwks.json"
# Short, because a verifier that keeps the keys longer would not know a new key.
SHARED = {"Cache-Control": "public, max-age=300"}

blueprint = Group("Authentication", description=__doc__)

_REFUSALS = (
    Problem(415, NOT_A_FORM),
    OAuthRefused(NO_GRANT_TYPE),
    OAuthRefused(OTHER_GRANT_TYPE, "unsupported_grant_type"),
    OAuthRefused(NOT_GRANTED.format("lookup,wallet", "lookup wallet"), "invalid_scope"),
    OAuthRefused(WRONG, "invalid_client"),
    RateLimited(TOO_MANY_WRONG),
)


@blueprint.operation(
    f"POST {TOKEN_PATH}",
    reply=Shown(TOKEN, description="The token."),
    doc={
        "requestBody": {
            "required": True,
            "content": {FORM: {"schema": TokenForm, "example": TOKEN_FORM}},
        },
        "operationId": "issue_token",
        "security": [{"basic": []}, {}],
        "responses": error_responses([*OF_EVERY_REQUEST, *_REFUSALS], is_token=True),
    },
)
def issue_token(given: Given[None]) -> Response:
    """Get an access token.

    Send the client credentials in the form or as HTTP Basic, not both. Keep the token until it
    expires: it needs no renewal before. After five wrong secrets a client has to wait, at that
    address only; after 60 of any clients all that call from there.
    """
    given.at = given.parts.gate.now()
    form = read_form()
    if "grant_type" not in form:
        raise OAuthRefused(NO_GRANT_TYPE)
    if form["grant_type"] != GRANT_TYPE:
        raise OAuthRefused(OTHER_GRANT_TYPE, "unsupported_grant_type")
    client, issuer = _authenticate(given, *read_credentials(form)), given.parts.issuer
    scopes = _narrow(client, form.get("scope", ""))
    token = issuer.issue(client.client_id, client.organization_id, scopes)
    shown = Token(access_token=token, expires_in=issuer.ttl_s, scope=" ".join(scopes))
    return json_response(shown, headers=UNCACHED)


@blueprint.operation(
    f"GET {KEYS_PATH}", reply=Shown(KEY_SET, description="The keys."), errors="RATE_LIMITED"
)
def key_set(given: Given[None]) -> Response:
    """Read the public keys that verify access tokens.

    A JWK set (RFC 7517). A key stays in it for as long as a token that it signed is good.
    """
    return json_response(KeySet(**given.parts.keys.jwks()), headers=SHARED)


def _metadata(issuer: str, auth: str, public: str) -> ServerMetadata:
    return ServerMetadata(
        issuer=issuer,
        token_endpoint=auth + TOKEN_PATH,
        jwks_uri=auth + KEYS_PATH,
        grant_types_supported=[GRANT_TYPE],
        response_types_supported=[],
        scopes_supported=list(SCOPES),
        token_endpoint_auth_methods_supported=["client_secret_basic", "client_secret_post"],
        service_documentation=f"{public}/docs",
    )


@blueprint.operation(
    f"GET {METADATA_PATH}",
    reply=Shown(_metadata(*["https://api.partner.test"] * 3), description="The metadata."),
    errors="RATE_LIMITED",
)
def server_metadata(given: Given[None]) -> Response:
    """Read the metadata of the authorization server.

    What client libraries ask for to configure themselves (RFC 8414).
    """
    settings = given.parts.settings
    metadata = _metadata(settings.iss, reached(settings.auth), reached(settings.public))
    return json_response(metadata, headers=SHARED)


def server_metadata_of(issuer_path: str) -> Response:
    """Read the metadata where RFC 8414 §3.1 puts it for an issuer that has a path."""
    given = CURRENT.get()
    if f"/{issuer_path}" != urlsplit(given.parts.settings.iss).path:
        raise NotFound
    return server_metadata(given)
