"""API clients as the token endpoint and authorization read them."""

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
    secret_hashes: list[str]
    revoked: bool
    created_at: datetime


class ApiClients(ReadModel):
    """One row per client."""

    name = "api_clients"
    uses = (ApiClient.Event,)

    def build(self) -> Sequence[Table]:
        """Define the one table; lists are JSON."""
        self.rows = self.table(
            "api_clients",
            Column("client_id", String, primary_key=True),
            Column("organization_id", Uuid),
            Column("scopes", String, nullable=False),
            Column("secret_hashes", String, nullable=False),
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
            elif isinstance(event, ApiClient.SecretRotated):
                hashes = _json([event.secret_hash, *event.kept_hashes])
                self._update(connection, event.client_id, secret_hashes=hashes)
            elif isinstance(event, ApiClient.Revoked):
                self._update(connection, event.client_id, revoked=True)

    def _update(self, connection: Connection, client_id: str, **change: object) -> None:
        statement = self.rows.update().where(self.rows.c.client_id == client_id)
        connection.execute(statement.values(change))

    def all(self, connection: Connection) -> list[ApiClientRow]:
        """Read all clients, oldest first."""
        statement = select(self.rows).order_by(self.rows.c.created_at, self.rows.c.client_id)
        return [_read(row) for row in connection.execute(statement)]


def _row(event: ApiClient.Registered) -> dict[str, object]:
    return {
        "client_id": event.client_id,
        "organization_id": event.organization_id,
        "scopes": _json(event.scopes),
        "secret_hashes": _json([event.secret_hash]),
        "revoked": False,
        "created_at": to_micros(event.timestamp),
    }


def _read(row: Row[tuple[object, ...]]) -> ApiClientRow:
    return ApiClientRow(
        client_id=row.client_id,
        organization_id=row.organization_id,
        scopes=granted(msgspec.json.decode(row.scopes)),
        secret_hashes=msgspec.json.decode(row.secret_hashes),
        revoked=row.revoked,
        created_at=from_micros(row.created_at),
    )


def _json(values: Sequence[str]) -> str:
    return msgspec.json.encode(values).decode()
