"""When each link is read in the background; losing the table costs network reads."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    MetaData,
    Table,
    bindparam,
    case,
    func,
    select,
)

from domain.ids import as_id
from projections.engine.database import Database, from_micros, to_micros
from projections.engine.hot_reads import HotStatement, run
from projections.engine.in_parts import in_order
from projections.engine.inserting import insert_new
from projections.engine.shape import Stored

# The due times of a link that was asked for, so that it comes before all others: not read since,
# and in hand, when who asks once more has it read once more.
REQUESTED, CLAIMED = 0, 1


class DueReading(Struct, frozen=True):
    """A link that has become active, with the position of its activation and its first turn."""

    link_id: UUID
    organization_id: UUID
    network: str
    position: int
    due_at: datetime


STORED = Stored(DueReading)


class ReadingSchedule:
    """A row per link that has not ended, from its activation on."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.metadata = MetaData()
        self._rows = Table(
            "reading_turns",
            self.metadata,
            *STORED.columns("link_id"),
            Column("answered_at", BigInteger, nullable=False),
            Column("ends_at", BigInteger, index=True),
            Index("ix_reading_turns_position", "position"),
            Index("reading_turns_due", "network", "organization_id", "due_at"),
            Index("reading_turns_answered", "network", "answered_at"),
        )
        row = self._rows.c
        mine = row.link_id == bindparam("link")
        moved = self._rows.update().where(mine)
        next_due = moved.where(row.due_at != REQUESTED).values(
            due_at=bindparam("new_due_at"),
            ends_at=bindparam("new_ends_at"),
            answered_at=func.coalesce(bindparam("new_answered_at"), row.answered_at),
        )
        self._move = HotStatement(next_due)
        self._claim = HotStatement(moved.where(row.due_at == REQUESTED).values(due_at=CLAIMED))
        self._set_end = HotStatement(moved.values(ends_at=bindparam("new_ends_at")))
        self._drop = HotStatement(self._rows.delete().where(mine))
        rank = func.row_number().over(partition_by=row.organization_id, order_by=row.due_at)
        requested = row.due_at <= CLAIMED
        due = select(row.link_id, row.due_at, requested.label("asked_for"), rank.label("turn"))
        due = due.where(row.network == bindparam("network"), row.due_at <= bindparam("now"))
        ranked = due.subquery()
        first = select(ranked.c.link_id, ranked.c.asked_for)
        first = first.order_by(ranked.c.turn, ranked.c.due_at)
        self._due = HotStatement(first.limit(bindparam("most")))
        ending = select(row.link_id).where(row.ends_at <= bindparam("now")).order_by(row.ends_at)
        self._ending = HotStatement(ending.limit(bindparam("most")))
        oldest = select(func.min(row.answered_at)).where(row.network == bindparam("network"))
        self._oldest = HotStatement(oldest)
        self._newest = HotStatement(select(func.max(row.position)))

    def newest(self) -> int:
        """Return the position of the newest link that has a row, 0 without any."""
        return int(self._database.rows(self._newest)[0][0] or 0)

    def enter(self, new: Sequence[DueReading], now: datetime) -> None:
        """Give new links their first turn; those that have a row keep it."""
        fresh = {"answered_at": to_micros(now), "ends_at": None}
        rows = [STORED.row(each) | fresh for each in new]
        self._database.write(insert_new, self._rows, rows)

    def due(self, network: str, now: datetime, limit: int) -> Mapping[UUID, bool]:
        """Return links of a network that are due, longest due first; organizations take turns.

        The value is True if a link was asked for; then it is read even if it was read lately.
        """
        values = {"network": network, "now": to_micros(now), "most": limit}
        return {as_id(row[0]): bool(row[1]) for row in self._database.rows(self._due, **values)}

    def hasten(self, connection: Connection, network: str, organization_id: UUID) -> None:
        """Ask for all links that an organization has at a network now."""
        row = self._rows.c
        mine = [row.organization_id == organization_id, row.network == network]
        mine.append(row.due_at != REQUESTED)
        change = self._rows.update().where(in_order(self._rows, *mine))
        connection.execute(change.values(due_at=REQUESTED))

    def put_right(self, now: datetime) -> None:
        """Let links that a clock which was ahead has read wait for their pause from now on."""
        row, at = self._rows.c, to_micros(now)
        later = case((row.due_at <= CLAIMED, row.due_at), else_=row.due_at - row.answered_at + at)
        change = self._rows.update().where(in_order(self._rows, row.answered_at > at))
        self._database.change(change.values(due_at=later, answered_at=at))

    def ending(self, now: datetime, limit: int) -> Sequence[UUID]:
        """Return links with a plan whose end must be announced now."""
        values = {"now": to_micros(now), "most": limit}
        return [as_id(row[0]) for row in self._database.rows(self._ending, **values)]

    def claim(self, link_id: UUID) -> None:
        """Note that a link is about to be read, perhaps because it was asked for."""
        self._database.write(run, self._claim, link=link_id)

    def move(
        self,
        link_id: UUID,
        due_at: datetime,
        ends_at: datetime | None,
        answered_at: datetime | None,
    ) -> None:
        """Set the next turn of a link, unless it was asked for meanwhile.

        Without `answered_at` its reading keeps its age.
        """
        values = {
            "new_due_at": to_micros(due_at),
            "new_ends_at": ends_at and to_micros(ends_at),
            "new_answered_at": answered_at and to_micros(answered_at),
        }
        self._database.write(run, self._move, link=link_id, **values)

    def set_next_end(self, link_id: UUID, ends_at: datetime | None) -> None:
        ends = ends_at and to_micros(ends_at)
        self._database.write(run, self._set_end, link=link_id, new_ends_at=ends)

    def drop(self, link_id: UUID) -> None:
        self._database.write(run, self._drop, link=link_id)

    def oldest(self, networks: Sequence[str]) -> Mapping[str, datetime]:
        """Return, by network, when its longest unread link was last read; omit empty networks."""
        found = {each: self._database.rows(self._oldest, network=each)[0][0] for each in networks}
        return {name: from_micros(at) for name, at in found.items() if at is not None}
