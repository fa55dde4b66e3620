"""Who calls: the bearer token of a request, and what a refused caller is told (RFC 6750)."""

import re

from app.http.edge.request import container, request_context
from app.security.authorization import Caller
from app.security.tokens import MALFORMED, Claims
from domain.errors import InsufficientScope, RateLimited, Refused, Unauthorized

REALM = 'Bearer realm="api"'

ORGANIZATION = "HTTP_X_ORGANIZATION_ID"  # A repeated header arrives here as one value with commas.
MISSING = "The access token is missing; send it in the header Authorization, as Bearer."

_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE | re.ASCII)
_PRESENTED = re.compile(r"bearer +.", re.IGNORECASE)


def authenticate(scope: str) -> Caller:
    """Return the caller of this request; check its token, its organization, then its scope."""
    context = request_context()
    context.scope = scope
    claims = claims_of(context)
    named, now = context.environ.get(ORGANIZATION), context.at
    caller = context.container.authorizer.authorize(claims, named, scope, now)
    context.organization_id = caller.organization_id
    per_minute = context.container.settings.requests_per_minute(caller.rate_limit)
    if per_minute:  # Else there is no limit.
        context.admission = context.container.rate_limits.admit(caller.organization_id, per_minute)
    return caller


def refuse_over_limit() -> None:
    """Refuse this request if its organization has sent too many in this minute."""
    admission = request_context().admission
    if admission is not None and admission.is_over:
        message = f"More than {admission.per_minute} requests came in this minute."
        raise RateLimited(message, retry_after_s=admission.resets_s)


def authenticate_machine(scope: str) -> str:
    """Return the machine-to-machine client of this request, whatever organization it names."""
    context = request_context()
    context.scope = scope
    claims = claims_of_caller()
    context.container.authorizer.authorize_machine(
        claims.client_id, claims.organization_id, claims.scopes, scope
    )
    return claims.client_id


def _authorization() -> str:
    given: str = request_context().environ.get("HTTP_AUTHORIZATION", "")
    return given


def claims_of_caller() -> Claims:
    """Return the claims of the token of this request; raises Unauthorized without a valid one."""
    authorization = _authorization()
    token = bearer_of(authorization)
    if token is None:
        raise Unauthorized(MALFORMED if _PRESENTED.match(authorization) else MISSING)
    return container().verifier.verify(token)


def bearer_of(authorization: str) -> str | None:
    """Return the token that a header presents, if it has the form of one."""
    match = _BEARER.fullmatch(authorization)
    return None if match is None else match[1]


def challenge(refusal: Refused) -> dict[str, str]:
    """Return the `WWW-Authenticate` of a refusal; it has an error code only if a token was sent."""
    if not isinstance(refusal, Unauthorized | InsufficientScope):
        return {}
    parts = [REALM]
    if isinstance(refusal, InsufficientScope):
        parts += ['error="insufficient_scope"', f'scope="{request_context().scope}"']
    elif _PRESENTED.match(_authorization()):
        parts.append('error="invalid_token"')
    return {"WWW-Authenticate": ", ".join([*parts, f'error_description="{refusal}"'])}
