"""Webhook endpoints of all organizations, as the planner of deliveries and operators read them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct
from sqlalchemy import BigInteger, Column, Connection, Table, func, select

from domain.log.log import Recorded
from domain.webhooks.endpoint import WebhookEndpoint
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel
from projections.engine.shape import Stored


class WebhookEndpointRow(Struct, frozen=True):
    """One endpoint; it gets messages about events after position `since`, unless `disabled`."""

    id: UUID
    organization_id: UUID
    created_at: datetime
    events: list[str] | None
    disabled: str | None
    since: int
    is_deleted: bool = False


STORED = Stored(WebhookEndpointRow)


class WebhookEndpoints(ReadModel):
    """One row per endpoint, deleted ones too; an organization has at most ten others."""

    name = "webhook_endpoints"
    uses = (WebhookEndpoint.Event,)

    def build(self) -> Sequence[Table]:
        self.rows = self.table(
            "webhook_endpoints",
            *STORED.columns("id"),
            Column("changed_position", BigInteger, nullable=False),
            self.index("webhook_endpoints_by_organization", "organization_id"),
            self.index("webhook_endpoints_by_change", "changed_position"),
        )
        self._newest = select(func.max(self.rows.c.changed_position))
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Change one row at a time; changes are rare."""
        for position, event in batch:
            if isinstance(event, WebhookEndpoint.Registered):
                insert_many(connection, self.rows, [_first(position, event)])
            elif isinstance(event, WebhookEndpoint.Event):
                change = {**_change_of(position, event), "changed_position": position}
                this = self.rows.c.id == event.originator_id
                connection.execute(self.rows.update().where(this).values(change))

    def changed_at(self, connection: Connection) -> int:
        return connection.execute(self._newest).scalar_one() or 0

    def active(self, connection: Connection) -> list[WebhookEndpointRow]:
        """Read the endpoints that get messages."""
        columns = self.rows.c
        wanted = (columns.disabled.is_(None), columns.is_deleted.is_(False))
        return [*map(STORED.read, connection.execute(select(self.rows).where(*wanted)))]

    def all(
        self, connection: Connection, organization_id: UUID | None = None
    ) -> list[WebhookEndpointRow]:
        """Read all endpoints that are not deleted, perhaps of one organization, oldest first."""
        columns = self.rows.c
        statement = select(self.rows).where(columns.is_deleted.is_(False))
        if organization_id is not None:
            statement = statement.where(columns.organization_id == organization_id)
        ordered = statement.order_by(columns.created_at, columns.id)
        return [*map(STORED.read, connection.execute(ordered))]


def _first(position: int, event: WebhookEndpoint.Registered) -> dict[str, Any]:
    owner, at = event.organization_id, event.timestamp
    row = WebhookEndpointRow(event.originator_id, owner, at, event.events, None, since=position)
    return {**STORED.row(row), "changed_position": position}


def _change_of(position: int, event: object) -> dict[str, Any]:
    match event:
        case WebhookEndpoint.Changed():
            return {"events": _listed(event.events)}
        case WebhookEndpoint.Disabled():
            return {"disabled": event.reason}
        case WebhookEndpoint.Enabled():
            return {"disabled": None, "since": position}
        case WebhookEndpoint.Deleted():
            return {"is_deleted": True}
        case _:
            return {}


def _listed(events: list[str] | None) -> str | None:
    return None if events is None else msgspec.json.encode(events).decode()
