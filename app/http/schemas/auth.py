"""The form of a token request."""

from marshmallow import Schema, fields

from app.http.parser import described


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
