"""API clients as authorization and operators read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec
from sqlalchemy import BigInteger, Boolean, Column, Connection, Row, String, Table, Uuid, select

from domain.accounts.organization import ApiClient, granted
from domain.log.log import Recorded
from projections.engine.database import from_micros, to_micros
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel


@dataclass(frozen=True, slots=True)
class ApiClientRow:
    """One client; `organization_id` is None for an approved machine-to-machine client."""

    client_id: str
    organization_id: UUID | None
    scopes: list[str]
    revoked: bool
    created_at: datetime


class ApiClients(ReadModel):
    """One row per client."""

    name = "api_clients"
    version = 2
    uses = (ApiClient.Registered, ApiClient.Revoked)

    def build(self) -> Sequence[Table]:
        """Define the one table; the list of scopes is JSON."""
        self.rows = self.table(
            "api_clients",
            Column("client_id", String, primary_key=True),
            Column("organization_id", Uuid),
            Column("scopes", String, nullable=False),
            Column("revoked", Boolean, nullable=False),
            Column("created_at", BigInteger, nullable=False),
        )
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert new clients and change one row at a time; both are rare."""
        for recorded in batch:
            event = recorded.event
            if isinstance(event, ApiClient.Registered):
                insert_many(connection, self.rows, [_row(event)])
            elif isinstance(event, ApiClient.Revoked):
                this = self.rows.c.client_id == event.client_id
                connection.execute(self.rows.update().where(this).values(revoked=True))

    def all(self, connection: Connection) -> list[ApiClientRow]:
        """Read all clients, oldest first."""
        statement = select(self.rows).order_by(self.rows.c.created_at, self.rows.c.client_id)
        return [_read(row) for row in connection.execute(statement)]


def _row(event: ApiClient.Registered) -> dict[str, object]:
    return {
        "client_id": event.client_id,
        "organization_id": event.organization_id,
        "scopes": msgspec.json.encode(event.scopes).decode(),
        "revoked": False,
        "created_at": to_micros(event.timestamp),
    }


def _read(row: Row[tuple[object, ...]]) -> ApiClientRow:
    return ApiClientRow(
        client_id=row.client_id,
        organization_id=row.organization_id,
        scopes=granted(msgspec.json.decode(row.scopes)),
        revoked=row.revoked,
        created_at=from_micros(row.created_at),
    )
