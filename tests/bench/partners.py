"""Partners of an installation: organizations with money, a client and a token."""

from dataclasses import dataclass
from uuid import UUID, uuid4

from app.bootstrap.container import Container
from domain.accounts.organization import SCOPES
from tests.bench.installation import cause, new_organization


@dataclass(frozen=True)
class Partner:
    organization: UUID
    client_id: str
    token: str


def new_partner(container: Container) -> Partner:
    """Register an organization with a full wallet and a client that may do everything."""
    organization, client_id = new_organization(container), f"cl_{uuid4().hex[:24]}"
    container.accounts.register_client(
        cause(),
        client_id=client_id,
        secret_hash="0" * 64,
        organization_id=organization,
        scopes=[],
    )
    token = container.issuer.issue(client_id, organization, SCOPES)
    return Partner(organization, client_id, token)
