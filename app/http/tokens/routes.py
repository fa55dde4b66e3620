"""Access tokens, and the documents that others need to find and verify them."""

from urllib.parse import urlsplit

from flask import Response

from app.http.edge.input import Blueprint
from app.http.edge.oauth_errors import (
    FORM,
    NO_STORE,
    TOKEN_PATH,
    InvalidClient,
    InvalidRequest,
    InvalidScope,
    SlowDown,
    UnsupportedGrantType,
)
from app.http.edge.operation import public
from app.http.edge.problems import OF_EVERY_REQUEST, WRONG_MEDIA_TYPE
from app.http.edge.replies import json_response
from app.http.edge.request import container, reached
from app.http.tokens.grant import (
    GRANT_TYPE,
    NO_GRANT_TYPE,
    NOT_GRANTED,
    OTHER_GRANT_TYPE,
    WRONG,
    check_grant_type,
    grant,
)
from app.http.tokens.input import TokenForm, read_credentials, read_form
from app.http.tokens.replies import (
    KEY_SET,
    SERVER_METADATA,
    TOKEN,
    TOKEN_FORM,
    KeySet,
    ServerMetadata,
    Token,
    oauth_responses,
)
from domain.accounts.organization import SCOPES
from domain.errors import NotFound

METADATA_PATH = "/.well-known/oauth-authorization-server"
KEYS_PATH = "/.well-known/jwks.json"
# Short, because a verifier that keeps the keys longer would not know a new key.
SHARED = {"Cache-Control": "public, max-age=300"}

blueprint = Blueprint(
    "Authentication", __name__, description="Access tokens by client credentials (OAuth 2.0)."
)

_REFUSALS = (
    InvalidRequest(NO_GRANT_TYPE),
    UnsupportedGrantType(OTHER_GRANT_TYPE),
    InvalidScope(NOT_GRANTED),
    InvalidClient(WRONG),
    SlowDown(60),
)


@blueprint.route(TOKEN_PATH, methods=["POST"])
@public(
    oauth_responses(_REFUSALS, [WRONG_MEDIA_TYPE, *OF_EVERY_REQUEST]),
    security=[{"basic": []}, {}],
)
@blueprint.doc(
    requestBody={"required": True, "content": {FORM: {"schema": TokenForm, "example": TOKEN_FORM}}}
)
@blueprint.replies(200, TOKEN, "The token.")
def issue_token() -> Response:
    """Get an access token.

    Send the client credentials in the form or as HTTP Basic, not both. Keep the token until it
    expires: it needs no renewal before. After five wrong secrets a client has to wait, at that
    address only; after 60 of any clients all that call from there.
    """
    container().clock_check.refuse()
    form = read_form()
    check_grant_type(form)
    granted = grant(read_credentials(form), form.get("scope", ""))
    token = Token(
        access_token=granted.access_token,
        expires_in=granted.expires_in_s,
        scope=" ".join(granted.scopes),
    )
    return json_response(token, headers=NO_STORE)


@blueprint.route(KEYS_PATH, methods=["GET"])
@public()
@blueprint.replies(200, KEY_SET, "The keys.")
def key_set() -> Response:
    """Read the public keys that verify access tokens.

    A JWK set (RFC 7517). A key stays in it for as long as a token that it signed is good.
    """
    return json_response(KeySet(**container().keys.jwks()), headers=SHARED)


@blueprint.route(METADATA_PATH, methods=["GET"])
@public()
@blueprint.replies(200, SERVER_METADATA, "The metadata.")
def server_metadata() -> Response:
    """Read the metadata of the authorization server.

    What client libraries ask for to configure themselves (RFC 8414).
    """
    settings = container().settings
    metadata = ServerMetadata(
        issuer=settings.iss,
        token_endpoint=reached(settings.auth) + TOKEN_PATH,
        jwks_uri=reached(settings.auth) + KEYS_PATH,
        grant_types_supported=[GRANT_TYPE],
        response_types_supported=[],
        scopes_supported=list(SCOPES),
        token_endpoint_auth_methods_supported=["client_secret_basic", "client_secret_post"],
        service_documentation=f"{reached(settings.public)}/docs",
    )
    return json_response(metadata, headers=SHARED)


def server_metadata_of(issuer_path: str) -> Response:
    """Read the metadata where RFC 8414 §3.1 puts it for an issuer that has a path."""
    if f"/{issuer_path}" != urlsplit(container().settings.iss).path:
        raise NotFound
    response: Response = server_metadata()
    return response
