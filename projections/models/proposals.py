"""What waits for another operator, and what each operator has moved without one on each day."""

from collections.abc import Sequence
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Column, Connection, String, Table, Uuid, select

from domain.accounts.approvals import Proposal
from domain.accounts.wallet import BOOKINGS
from domain.log.log import Recorded
from projections.engine.inserting import insert_many, upsert
from projections.engine.read_model import ReadModel

DECIDED = (Proposal.Approved, Proposal.Rejected, Proposal.Used)
MOVED: tuple[type[Any], ...] = tuple(each.Made for each in BOOKINGS.values())
MACHINE = "client:"  # Before the id of a payment service that is an actor.


class Proposals(ReadModel):
    """A row for each thing that waits (the log has its facts), and one for an operator's day."""

    name = "proposals"
    version = 2
    uses = (Proposal.Made, *DECIDED, *MOVED)

    def build(self) -> Sequence[Table]:
        self.rows = self.table(
            "adjustment_proposals",
            Column("id", Uuid, primary_key=True),
            Column("position", BigInteger, nullable=False),
        )
        self.days = self.table(
            "operator_days",
            Column("actor", String, primary_key=True),
            Column("day", String, primary_key=True),
            Column("micros", BigInteger, nullable=False),
        )
        return [self.rows, self.days]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        rows = [
            {"id": event.originator_id, "position": position}
            for position, event in batch
            if isinstance(event, Proposal.Made)
        ]
        insert_many(connection, self.rows, rows)
        decided = [event.originator_id for _, event in batch if isinstance(event, DECIDED)]
        if decided:
            connection.execute(self.rows.delete().where(self.rows.c.id.in_(decided)))
        moved = dict[tuple[str, str], int]()
        for _, event in batch:
            if isinstance(event, MOVED) and event.actor and event.proposal is None:
                key = event.actor, event.timestamp.date().isoformat()
                moved[key] = moved.get(key, 0) + abs(event.amount_micros)
        days = [
            {"actor": actor, "day": day, "micros": micros}
            for (actor, day), micros in moved.items()
            if not actor.startswith(MACHINE)
        ]
        upsert(connection, self.days, days, added=frozenset({"micros"}))

    def all(self, connection: Connection) -> list[UUID]:
        """Return what waits, oldest first."""
        waiting = select(self.rows.c.id).order_by(self.rows.c.position)
        return [*connection.execute(waiting).scalars()]

    def moved(self, connection: Connection, actor: str | None, day: date) -> int:
        """Return what an operator has moved on a day without another one."""
        its = self.days.c
        found = select(its.micros).where(its.actor == actor, its.day == day.isoformat())
        return connection.execute(found).scalar() or 0
