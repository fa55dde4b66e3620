"""The client credentials grant (RFC 6749 §4.4): an access token for the right secret."""

from dataclasses import dataclass
from hashlib import sha256
from ipaddress import ip_address, ip_network

from app.http.edge.oauth_errors import (
    InvalidClient,
    InvalidRequest,
    InvalidScope,
    SlowDown,
    UnsupportedGrantType,
)
from app.http.edge.request import container, current_cause, current_request
from app.http.tokens.input import ClientCredentials
from domain.accounts.organization import ApiClient, api_client_id

GRANT_TYPE = "client_credentials"
NO_GRANT_TYPE = "The parameter grant_type is missing."
OTHER_GRANT_TYPE = f"Only {GRANT_TYPE} is supported."
WRONG = "The client is unknown, or its secret is wrong."
NOT_GRANTED = "A requested scope is not granted to this client."


@dataclass(frozen=True, slots=True)
class Grant:
    """A token and what it allows."""

    access_token: str
    expires_in_s: int
    scopes: list[str]


def check_grant_type(form: dict[str, str]) -> None:
    """Refuse every grant except client credentials."""
    grant_type = form.get("grant_type")
    if grant_type is None:
        raise InvalidRequest(NO_GRANT_TYPE)
    if grant_type != GRANT_TYPE:
        raise UnsupportedGrantType(OTHER_GRANT_TYPE)


def grant(credentials: ClientCredentials, requested: str) -> Grant:
    """Return a token with the `requested` scopes; without any, with all scopes of the client."""
    client = _authenticate(credentials)
    scopes = _narrow(client, requested)
    issuer = container().issuer
    token = issuer.issue(client.client_id, client.organization_id, scopes)
    return Grant(token, issuer.ttl_s, scopes)


def _authenticate(credentials: ClientCredentials) -> ApiClient:
    """Return the client; an unknown or revoked client and a wrong secret give the same refusal.

    The client is read from the log itself, so new clients and changes take effect at once.
    """
    parts = container()
    address = _address()
    # Hashed, so that the store does not hold what was sent.
    counted = _hash(f"{address}\0{credentials.client_id}"), _hash(address)
    wait_s = parts.throttle.wait_s(*counted)
    if wait_s:
        raise SlowDown(wait_s)
    client = parts.log.find(ApiClient, api_client_id(credentials.client_id))
    hashes: list[str] = []
    if client is not None and not client.revoked:
        hashes = client.hashes_at(parts.clock(), parts.endless_secrets_until)
    used = parts.secret_hasher.matches(credentials.client_secret, hashes)
    if used is None or client is None:
        parts.throttle.failed(*counted)
        raise InvalidClient(WRONG)
    if parts.secret_hasher.is_outdated(used):
        new, cause = parts.secret_hasher.hash(credentials.client_secret), current_cause()
        parts.log.update(client, lambda newest: newest.rehash_secret(used, new, cause))
    return client


def _hash(subject: str) -> str:
    return sha256(subject.encode()).hexdigest()


def _address() -> str:
    """Return the address of the request; for IPv6 its /64, because a client has 2**64 addresses."""
    address = str(current_request().remote_addr)
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ip_network((parsed, 64), strict=False))  # noqa: PLR2004  # It is the number of the version.


def _narrow(client: ApiClient, requested: str) -> list[str]:
    wanted = set(requested.split())
    if not wanted <= set(client.scopes):
        raise InvalidScope(NOT_GRANTED)
    return [scope for scope in client.scopes if not wanted or scope in wanted]
