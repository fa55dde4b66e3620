"""Monthly fees as the clock and operators read them: what fell due, and whether it was charged."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    Row,
    String,
    Table,
    Uuid,
    bindparam,
    func,
    select,
)

from domain.accounts.monthly_fee import MonthlyFee
from domain.log.log import Recorded
from projections.engine.database import from_micros, to_micros
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel, execute_many


@dataclass(frozen=True, slots=True)
class FeeRow:
    """One fee: `link_count` links at `fee_micros` each; `charged_at` is None while it is owed."""

    id: UUID
    organization_id: UUID
    month: str
    link_count: int
    fee_micros: int
    currency: str
    due_at: datetime
    charged_at: datetime | None

    @property
    def amount_micros(self) -> int:
        """The amount; computed, because it may exceed what a column can hold."""
        return self.link_count * self.fee_micros


class FeeBook(ReadModel):
    """One row per organization and month in which something fell due."""

    name = "monthly_fees"
    uses = (MonthlyFee.Event,)

    def build(self) -> Sequence[Table]:
        """Define the table; fees that are owed have a separate index, which stays small."""
        charged_at = Column("charged_at", BigInteger)
        self.rows = self.table(
            "monthly_fees",
            Column("id", Uuid, primary_key=True),
            Column("organization_id", Uuid, nullable=False),
            Column("month", String, nullable=False),
            Column("link_count", Integer, nullable=False),
            Column("fee_micros", BigInteger, nullable=False),
            Column("currency", String, nullable=False),
            Column("due_at", BigInteger, nullable=False),
            charged_at,
            self.index("monthly_fees_by_month", "organization_id", "month", unique=True),
            self.index("monthly_fees_owed", "organization_id", "month", where=charged_at.is_(None)),
        )
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert new fees, then note which were charged, each in one statement."""
        due, charged = [], []
        for recorded in batch:
            match recorded.event:
                case MonthlyFee.Due() as event:
                    due.append(_row(event))
                case MonthlyFee.Charged() as event:
                    at = to_micros(event.timestamp)
                    charged.append({"fee": event.originator_id, "at": at})
        insert_many(connection, self.rows, due)
        update = self.rows.update().where(self.rows.c.id == bindparam("fee"))
        execute_many(connection, update.values(charged_at=bindparam("at")), charged)

    def newest(self, connection: Connection) -> dict[UUID, str]:
        """Return the newest month with a fee, for each organization that ever owed one."""
        columns = self.rows.c
        month = func.max(columns.month).label("month")
        statement = select(columns.organization_id, month).group_by(columns.organization_id)
        return {row.organization_id: row.month for row in connection.execute(statement)}

    def owed(self, connection: Connection) -> list[FeeRow]:
        """Return every fee that has not been charged, oldest first for each organization."""
        columns = self.rows.c
        statement = select(self.rows).where(columns.charged_at.is_(None))
        ordered = statement.order_by(columns.organization_id, columns.month)
        return [_read(row) for row in connection.execute(ordered)]

    def all_of(self, connection: Connection, organization_id: UUID) -> list[FeeRow]:
        """Return every fee of an organization, oldest month first."""
        columns = self.rows.c
        statement = select(self.rows).where(columns.organization_id == organization_id)
        return [_read(row) for row in connection.execute(statement.order_by(columns.month))]


def _row(event: MonthlyFee.Due) -> dict[str, Any]:
    return {
        "id": event.originator_id,
        "organization_id": event.organization_id,
        "month": event.month,
        "link_count": len(event.link_ids),
        "fee_micros": event.fee_micros,
        "currency": event.price.currency,
        "due_at": to_micros(event.timestamp),
        "charged_at": None,
    }


def _read(row: Row[Any]) -> FeeRow:
    charged_at = from_micros(row.charged_at)
    due_at = from_micros(row.due_at)
    return FeeRow(**{**row._mapping, "due_at": due_at, "charged_at": charged_at})  # noqa: SLF001  # SQLAlchemy's documented access.
