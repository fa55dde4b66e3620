"""What was erased, so that it can be erased again where older keys came back."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct
from sqlalchemy import Connection, Table, select

from domain.accounts.operator_acts import Erasure, Part
from domain.log.log import Recorded
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel
from projections.engine.shape import Stored


class _Row(Struct):
    position: int
    organization_id: UUID
    parts: list[Part]


STORED = Stored(_Row)


class Erasures(ReadModel):
    """A row per erasure."""

    name = "erasures"
    uses = (Erasure.Made,)

    def build(self) -> Sequence[Table]:
        self.rows = self.table("erasures", *STORED.columns("position"))
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        made = ((position, event) for position, event in batch if isinstance(event, Erasure.Made))
        rows = [_Row(position, event.organization_id, event.parts) for position, event in made]
        insert_many(connection, self.rows, [*map(STORED.row, rows)])

    def newest(self, connection: Connection, limit: int | None) -> list[tuple[UUID, list[Part]]]:
        """Return whose data was erased and what, newest first."""
        newest = select(self.rows).order_by(self.rows.c.position.desc()).limit(limit)
        rows = map(STORED.read, connection.execute(newest))
        return [(row.organization_id, row.parts) for row in rows]
