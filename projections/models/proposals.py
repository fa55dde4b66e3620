"""What waits for the approval of another operator: adjustments and other proposals."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import BigInteger, Column, Connection, Table, Uuid, select

from domain.accounts.approvals import Proposal
from domain.accounts.wallet import Adjustment
from domain.log.log import Recorded
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel

PROPOSED = (Adjustment.Proposed, Proposal.Made)
DECIDED = (Adjustment.Approved, Adjustment.Rejected, Proposal.Approved, Proposal.Rejected)


class Proposals(ReadModel):
    """A row for each thing that waits; the log has its facts."""

    name = "proposals"
    uses = (*PROPOSED, *DECIDED)

    def build(self) -> Sequence[Table]:
        self.rows = self.table(
            "adjustment_proposals",
            Column("id", Uuid, primary_key=True),
            Column("position", BigInteger, nullable=False),
        )
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Add what is new, then remove what is decided."""
        rows = [
            {"id": event.originator_id, "position": position}
            for position, event in batch
            if isinstance(event, PROPOSED)
        ]
        insert_many(connection, self.rows, rows)
        decided = [event.originator_id for _, event in batch if isinstance(event, DECIDED)]
        if decided:
            connection.execute(self.rows.delete().where(self.rows.c.id.in_(decided)))

    def all(self, connection: Connection) -> list[UUID]:
        """Return what waits, oldest first."""
        waiting = select(self.rows.c.id).order_by(self.rows.c.position)
        return [*connection.execute(waiting).scalars()]
