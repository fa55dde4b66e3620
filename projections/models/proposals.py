"""What waits for the approval of another operator: adjustments and other proposals."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import BigInteger, Column, Connection, Table, Uuid, select

from domain.accounts.approvals import Proposal
from domain.accounts.wallet import Adjustment
from domain.log.log import Recorded
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel


class Proposals(ReadModel):
    """A row for each thing that waits; the log has its facts."""

    name = "proposals"
    uses = (
        *(Adjustment.Proposed, Adjustment.Approved, Adjustment.Rejected),
        *(Proposal.Made, Proposal.Approved, Proposal.Rejected),
    )

    def build(self) -> Sequence[Table]:
        self.rows = self.table(
            "adjustment_proposals",
            Column("id", Uuid, primary_key=True),
            Column("position", BigInteger, nullable=False),
        )
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Add new proposals and remove decided ones; most are decided in a later batch."""
        proposed: dict[UUID, int] = {}
        decided: list[UUID] = []
        for recorded in batch:
            event = recorded.event
            if isinstance(event, Adjustment.Proposed | Proposal.Made):
                proposed[event.originator_id] = recorded.position
            elif isinstance(event, self.uses) and proposed.pop(event.originator_id, None) is None:
                decided.append(event.originator_id)
        rows = [{"id": each, "position": position} for each, position in proposed.items()]
        insert_many(connection, self.rows, rows)
        if decided:
            connection.execute(self.rows.delete().where(self.rows.c.id.in_(decided)))

    def all(self, connection: Connection) -> list[UUID]:
        """Return what waits, oldest first."""
        waiting = select(self.rows.c.id).order_by(self.rows.c.position)
        return [*connection.execute(waiting).scalars()]
