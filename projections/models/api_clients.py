"""API clients as authorization and operators read them."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct
from sqlalchemy import Connection, select
from sqlalchemy.schema import SchemaItem

from domain.accounts.organization import SCOPES, ApiClient
from domain.daily import Daily
from projections.engine.read_model import Snapshot


class ApiClientRow(Struct, frozen=True):
    """One client; `organization_id` is None for an approved machine-to-machine client."""

    client_id: str
    organization_id: UUID | None
    scopes: list[str]
    revoked: bool
    created_at: datetime
    old_until: datetime | None  # When the secret before the newest ends.
    rotated_at: datetime | None
    rotations: Daily


class ApiClients(Snapshot[ApiClientRow]):
    """One row per client."""

    name = "api_clients"
    version = 3 + len(SCOPES)  # A client without a list of scopes also gets those added later.
    uses = (ApiClient.Registered, ApiClient.SecretRotated, ApiClient.Revoked)
    of_kind, row, key = ApiClient, ApiClientRow, "client_id"

    def besides(self) -> Sequence[SchemaItem]:
        return [self.index("api_clients_by_owner", "organization_id", "created_at")]

    def of_organization(self, connection: Connection, organization_id: UUID) -> list[ApiClientRow]:
        """Return the clients of an organization that are not revoked, oldest first."""
        client = self.rows.c
        theirs = select(self.rows).where(
            client.organization_id == organization_id, client.revoked.is_(False)
        )
        ordered = theirs.order_by(client.created_at, self.by)
        return [*map(self.stored.read, connection.execute(ordered))]
