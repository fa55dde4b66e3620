"""The months for which monthly fees fell due."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Column, Connection, String, Table, Uuid, func, select

from domain.accounts.monthly_fee import MonthlyFee
from domain.log.log import Recorded
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel


class FeeBook(ReadModel):
    """One row per organization and month in which something fell due."""

    name = "monthly_fees"
    version = 3
    uses = (MonthlyFee.Due,)

    def build(self) -> Sequence[Table]:
        keys = ("organization_id", Uuid()), ("month", String())
        columns = (Column(name, kind, primary_key=True) for name, kind in keys)
        self.rows = self.table("monthly_fees", *columns)
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        due = (event for _, event in batch if isinstance(event, MonthlyFee.Due))
        rows = [{"organization_id": it.organization_id, "month": it.month} for it in due]
        insert_many(connection, self.rows, rows)

    def newest(self, connection: Connection) -> dict[UUID, str]:
        """Return the newest month with a fee, for each organization that ever owed one."""
        columns = self.rows.c
        month = func.max(columns.month).label("month")
        statement = select(columns.organization_id, month).group_by(columns.organization_id)
        return {row.organization_id: row.month for row in connection.execute(statement)}
