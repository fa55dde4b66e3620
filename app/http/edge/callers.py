"""Who calls: the bearer token of a request, and what a refused caller is told (RFC 6750)."""

import re

from app.http.edge.request import current_request, request_context
from app.security.authorization import Caller
from app.security.tokens import MALFORMED
from domain.errors import InsufficientScope, Refused, Unauthorized

REALM = 'Bearer realm="api"'

ORGANIZATION = "HTTP_X_ORGANIZATION_ID"  # Repeated ones are one value here, with commas.
MISSING = "The access token is missing; send it in the header Authorization, as Bearer."

_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE | re.ASCII)
_PRESENTED = re.compile(r"bearer +.", re.IGNORECASE)


def authenticate(scope: str) -> Caller:
    """Return the caller of this request, or raise why there is none: token, organization, scope."""
    context = request_context()
    context.scope = scope
    environ = context.request.environ
    sent = environ.get("HTTP_AUTHORIZATION", "")
    match = _BEARER.fullmatch(sent)
    if match is None:
        raise Unauthorized(MALFORMED if _PRESENTED.match(sent) else MISSING)
    claims = context.container.verifier.verify(match[1])
    caller = context.container.authorizer.authorize(
        claims.client_id,
        claims.organization_id,
        [environ[ORGANIZATION]] if ORGANIZATION in environ else [],
        claims.scopes,
        scope,
    )
    context.organization_id = caller.organization_id
    return caller


def challenge(refusal: Refused) -> dict[str, str]:
    """Return the `WWW-Authenticate` of a refusal; an error code only when a token was presented."""
    if not isinstance(refusal, Unauthorized | InsufficientScope):
        return {}
    parts = [REALM]
    if isinstance(refusal, InsufficientScope):
        parts += ['error="insufficient_scope"', f'scope="{request_context().scope}"']
    elif _PRESENTED.match(current_request().environ.get("HTTP_AUTHORIZATION", "")):
        parts.append('error="invalid_token"')
    return {"WWW-Authenticate": ", ".join([*parts, f'error_description="{refusal}"'])}
