"""Input of a token request: its form, and its client id and secret (RFC 6749 §2.3.1 and §3.2)."""

from base64 import b64decode
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote_plus

from marshmallow import Schema, fields
from webargs.core import is_json
from werkzeug.exceptions import UnsupportedMediaType

from app.http.edge.input import described
from app.http.edge.oauth_errors import FORM, NOT_A_FORM, InvalidClient, InvalidRequest
from app.http.edge.request import current_request

FIELDS_MAX = 32
FORM_BYTES_MAX = 64 * 1024  # As much as its header may hold; a megabyte takes long to decode.
UNREADABLE_FORM = "The form cannot be read."
LONG_FORM = "The form is longer than 64 KiB."
REPEATED = "A parameter is given more than once."
TWO_WAYS = "Client credentials are given in two ways at once."
NO_CREDENTIALS = "No client credentials: send client_id and client_secret, or HTTP Basic."
UNREADABLE_BASIC = "The Basic credentials cannot be read."


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The credentials as sent, without white space around them."""

    client_id: str
    client_secret: str


def read_form() -> dict[str, str]:
    """Return the parameters of the body; one without a value counts as omitted (RFC 6749 §3.2)."""
    request = current_request()
    body = request.get_data()
    if body and is_json(request.mimetype):
        raise InvalidRequest(NOT_A_FORM)
    if body and (request.mimetype != FORM or "Content-Encoding" in request.headers):
        raise UnsupportedMediaType
    if len(body) > FORM_BYTES_MAX:
        raise InvalidRequest(LONG_FORM)
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise InvalidRequest(UNREADABLE_FORM) from None
    form = dict(pairs)
    if len(form) != len(pairs):
        raise InvalidRequest(REPEATED)
    return {name: value for name, value in form.items() if value}


def read_credentials(form: dict[str, str]) -> ClientCredentials:
    """Return the credentials of the header or of the form; both at once are refused."""
    basic = _read_basic()
    if basic is None:
        client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
    elif "client_secret" in form or form.get("client_id", basic[0]).strip() != basic[0]:
        raise InvalidRequest(TWO_WAYS)
    else:
        client_id, secret = basic
    client_id, secret = client_id.strip(), secret.strip()
    if not client_id or not secret:
        raise InvalidClient(NO_CREDENTIALS)
    return ClientCredentials(client_id, secret)


def _read_basic() -> tuple[str, str] | None:
    """Return user and password of HTTP Basic, each form-decoded; None without the header."""
    scheme, _, encoded = current_request().headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = b64decode(encoded.strip(), validate=True).decode()
        client_id, colon, secret = decoded.partition(":")
        if colon:
            return (
                unquote_plus(client_id, errors="strict").strip(),
                unquote_plus(secret, errors="strict").strip(),
            )
    except ValueError:
        pass  # Refused below, without repeating what was sent.
    raise InvalidClient(UNREADABLE_BASIC)


class TokenForm(Schema):
    """A token request (RFC 6749 §4.4.2)."""

    grant_type = fields.String(required=True, metadata={"enum": ["client_credentials"]})
    client_id = fields.String(metadata=described("Unless HTTP Basic carries it."))
    client_secret = fields.String(metadata=described("Unless HTTP Basic carries it."))
    scope = fields.String(
        metadata=described(
            "Scopes separated by spaces; without it, all that the client has.", examples=["lookup"]
        )
    )
