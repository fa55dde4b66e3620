"""What was erased, so that it can be erased again where older keys came back."""

from collections.abc import Iterator, Sequence
from uuid import UUID

import msgspec
from sqlalchemy import BigInteger, Column, Connection, String, Table, Uuid, select

from domain.accounts.erasure import Erasure, Part
from domain.log.log import Recorded
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel

_PARTS = msgspec.json.Decoder(list[Part])


class Erasures(ReadModel):
    """A row per erasure."""

    name = "erasures"
    uses = (Erasure.Made,)

    def build(self) -> Sequence[Table]:
        """Define the table, which is small."""
        self.rows = self.table(
            "erasures",
            Column("position", BigInteger, primary_key=True, autoincrement=False),
            Column("organization_id", Uuid, nullable=False),
            Column("parts", String, nullable=False),
        )
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert a row for each erasure."""
        rows = [
            {
                "position": position,
                "organization_id": event.organization_id,
                "parts": msgspec.json.encode(event.parts).decode(),
            }
            for position, event in batch
            if isinstance(event, Erasure.Made)
        ]
        insert_many(connection, self.rows, rows)

    def newest(
        self, connection: Connection, limit: int | None
    ) -> Iterator[tuple[UUID, list[Part]]]:
        """Yield whose data was erased and what, newest first."""
        newest = select(self.rows).order_by(self.rows.c.position.desc()).limit(limit)
        for row in connection.execute(newest).all():
            yield row.organization_id, _PARTS.decode(row.parts)
