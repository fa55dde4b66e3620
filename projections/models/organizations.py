"""Organizations as authorization and operators read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, Boolean, Column, Connection, Row, String, Table, Uuid, select

from domain.accounts.organization import Organization, Status
from domain.log.log import Recorded
from projections.engine.database import from_micros, to_micros
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel


@dataclass(frozen=True, slots=True)
class OrganizationRow:
    """One organization; `price_micros` is its own price per lookup, None for the general one."""

    id: UUID
    name: str
    status: Status
    price_micros: int | None
    monthly_link_fee_micros: int
    lookup_enabled: bool
    created_at: datetime
    low_balance_threshold_micros: int | None = None
    rate_limit_per_minute: int | None = None
    spending_limit_micros: int | None = None


class Organizations(ReadModel):
    """One row per organization."""

    name = "organizations"
    version = 2
    uses = (Organization.Event,)

    def build(self) -> Sequence[Table]:
        self.rows = self.table(
            "organizations",
            Column("id", Uuid, primary_key=True),
            Column("name", String, nullable=False),
            Column("status", String, nullable=False),
            Column("price_micros", BigInteger),
            Column("monthly_link_fee_micros", BigInteger, nullable=False),
            Column("lookup_enabled", Boolean, nullable=False),
            Column("created_at", BigInteger, nullable=False),
            Column("low_balance_threshold_micros", BigInteger),
            Column("rate_limit_per_minute", BigInteger),
            Column("spending_limit_micros", BigInteger),
        )
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert new organizations and change one column at a time; both are rare."""
        for recorded in batch:
            event = recorded.event
            if isinstance(event, Organization.Registered):
                self._insert(connection, event)
            else:
                change = _change_of(event)
                if change:
                    stream_id = event.originator_id
                    statement = self.rows.update().where(self.rows.c.id == stream_id)
                    connection.execute(statement.values(change))

    def _insert(self, connection: Connection, event: Organization.Registered) -> None:
        row = {
            "id": event.originator_id,
            "name": event.name,
            "status": "active",
            "price_micros": event.price_micros,
            "monthly_link_fee_micros": event.monthly_link_fee_micros,
            "lookup_enabled": True,
            "created_at": to_micros(event.timestamp),
        }
        insert_many(connection, self.rows, [row])

    def get(self, connection: Connection, organization_id: UUID) -> OrganizationRow | None:
        statement = select(self.rows).where(self.rows.c.id == organization_id)
        row = connection.execute(statement).one_or_none()
        return _read(row) if row else None

    def all(self, connection: Connection) -> list[OrganizationRow]:
        """Read all organizations, oldest first."""
        statement = select(self.rows).order_by(self.rows.c.created_at, self.rows.c.id)
        return [_read(row) for row in connection.execute(statement)]


def _change_of(event: object) -> dict[str, object]:
    match event:
        case Organization.Suspended():
            return {"status": "suspended"}
        case Organization.Activated():
            return {"status": "active"}
        case Organization.Deactivated():
            return {"status": "inactive"}
        case Organization.PriceChanged():
            return {"price_micros": event.price_micros}
        case Organization.MonthlyLinkFeeChanged():
            return {"monthly_link_fee_micros": event.monthly_link_fee_micros}
        case Organization.LookupSwitched():
            return {"lookup_enabled": event.enabled}
        case Organization.LowBalanceThresholdSet():
            return {"low_balance_threshold_micros": event.threshold_micros}
        case Organization.RateLimitSet():
            return {"rate_limit_per_minute": event.per_minute}
        case Organization.SpendingLimitSet():
            return {"spending_limit_micros": event.limit_micros}
        case _:
            return {}


def _read(row: Row[tuple[object, ...]]) -> OrganizationRow:
    return OrganizationRow(**{**row._mapping, "created_at": from_micros(row.created_at)})  # noqa: SLF001  # SQLAlchemy's documented access.
