"""API clients as authorization and operators read them."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from domain.accounts.organization import SCOPES, ApiClient
from projections.engine.read_model import Snapshot


class ApiClientRow(Struct, frozen=True):
    """One client; `organization_id` is None for an approved machine-to-machine client."""

    client_id: str
    organization_id: UUID | None
    scopes: list[str]
    revoked: bool
    created_at: datetime


class ApiClients(Snapshot[ApiClientRow]):
    """One row per client."""

    name = "api_clients"
    version = 2 + len(SCOPES)  # A client without a list of scopes also gets those added later.
    uses = (ApiClient.Registered, ApiClient.Revoked)
    of_kind, row, key = ApiClient, ApiClientRow, "client_id"
