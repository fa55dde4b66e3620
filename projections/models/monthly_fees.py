"""Monthly fees as operators read them: what fell due, and whether it was charged."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct
from sqlalchemy import Connection, Integer, Table, bindparam, func, select

from domain.accounts.monthly_fee import MonthlyFee
from domain.log.log import Recorded
from projections.engine.database import to_micros
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel, execute_many
from projections.engine.shape import Stored


class FeeRow(Struct, frozen=True):
    """One fee: `link_count` links at `fee_micros` each; `charged_at` is None while it is owed."""

    id: UUID
    organization_id: UUID
    month: str
    link_count: int
    fee_micros: int
    currency: str
    due_at: datetime
    charged_at: datetime | None = None

    @property
    def amount_micros(self) -> int:
        """The amount; computed, because it may exceed what a column can hold."""
        return self.link_count * self.fee_micros


STORED = Stored(FeeRow, link_count=Integer)


class FeeBook(ReadModel):
    """One row per organization and month in which something fell due."""

    name = "monthly_fees"
    version = 2
    uses = (MonthlyFee.Event,)

    def build(self) -> Sequence[Table]:
        """Define the table."""
        self.rows = self.table("monthly_fees", *STORED.columns("id"))
        month = self.rows.c.organization_id, self.rows.c.month
        self.index("monthly_fees_by_month", *month, unique=True)
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert new fees, then note which were charged, each in one statement."""
        due, charged = [], []
        for recorded in batch:
            match recorded.event:
                case MonthlyFee.Due() as event:
                    due.append(STORED.row(_row(event)))
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

    def all_of(self, connection: Connection, organization_id: UUID) -> list[FeeRow]:
        """Return every fee of an organization, oldest month first."""
        columns = self.rows.c
        statement = select(self.rows).where(columns.organization_id == organization_id)
        return [*map(STORED.read, connection.execute(statement.order_by(columns.month)))]


def _row(event: MonthlyFee.Due) -> FeeRow:
    return FeeRow(
        event.originator_id,
        event.organization_id,
        event.month,
        link_count=len(event.link_ids),
        fee_micros=event.fee_micros,
        currency=event.price.currency,
        due_at=event.timestamp,
    )
