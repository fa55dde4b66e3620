"""Tokens, keys and server metadata."""

from marshmallow import Schema, fields

from app.http.schemas.envelope import Output, described


class TokenForm(Schema):
    """A token request (RFC 6749 §4.4.2)."""

    grant_type = fields.String(required=True, metadata={"enum": ["client_credentials"]})
    client_id = fields.String(metadata=described("Unless HTTP Basic carries it."))
    client_secret = fields.String(metadata=described("Unless HTTP Basic carries it."))
    scope = fields.String(
        metadata=described(
            "Scopes separated by spaces; without it, all that the client has.", example="lookup"
        )
    )


class Token(Output):
    """An access token (RFC 6749 §5.1)."""

    access_token = fields.String(required=True, metadata=described("Send it as Bearer token."))
    expires_in = fields.Integer(required=True, metadata=described("Seconds.", example=3600))
    token_type = fields.String(required=True, metadata={"enum": ["Bearer"]})
    scope = fields.String(required=True, metadata=described("The scopes that it carries."))


class OAuthError(Output):
    """A refused token request (RFC 6749 §5.2)."""

    error = fields.String(
        required=True,
        metadata={
            "enum": [
                "invalid_request",
                "invalid_client",
                "invalid_scope",
                "unsupported_grant_type",
                "slow_down",
                "server_error",
            ]
        },
    )
    error_description = fields.String(required=True, metadata=described("For people."))


class KeySet(Output):
    """The public keys of tokens (RFC 7517 §5)."""

    keys = fields.List(fields.Dict(), required=True, metadata=described("One JWK each."))


class ServerMetadata(Output):
    """What a client library asks for (RFC 8414 §2)."""

    issuer = fields.Url(required=True)
    token_endpoint = fields.Url(required=True)
    jwks_uri = fields.Url(required=True)
    grant_types_supported = fields.List(fields.String(), required=True)
    response_types_supported = fields.List(fields.String(), required=True)
    scopes_supported = fields.List(fields.String(), required=True)
    token_endpoint_auth_methods_supported = fields.List(fields.String(), required=True)
    service_documentation = fields.Url(required=True)
