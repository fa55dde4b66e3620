"""Partners of an installation: organizations with money and a client, and tokens for them."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from os import urandom
from uuid import UUID

import msgspec

from app.bootstrap.container import Container
from app.security.secrets import new_client_id, new_client_secret
from tests.bench.installation import cause, new_organization


@dataclass(frozen=True)
class Partner:
    organization: UUID
    client_id: str
    secret: str


def new_partner(container: Container) -> Partner:
    """Register an organization with a full wallet and a client that may do everything."""
    organization = new_organization(container)
    partner = Partner(organization, new_client_id(urandom), new_client_secret(urandom))
    container.accounts.register_client(
        cause(),
        client_id=partner.client_id,
        secret_hash=container.secret_hasher.hash(partner.secret),
        organization_id=organization,
        scopes=[],
    )
    return partner


def tokens(host: str, port: int, partners: Sequence[Partner]) -> list[str]:
    """Ask a running service for a token of each partner."""
    connection = HTTPConnection(host, port, timeout=30)
    found = []
    for partner in partners:
        credentials = b64encode(f"{partner.client_id}:{partner.secret}".encode()).decode()
        headers = {
            "Authorization": f"Basic {credentials}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        connection.request("POST", "/auth/token", "grant_type=client_credentials", headers)
        reply = connection.getresponse()
        body = reply.read()
        assert reply.status == 200, body
        found.append(msgspec.json.decode(body)["access_token"])
    connection.close()
    return found
