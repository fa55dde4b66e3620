"""The list of what is due: each piece of work that the log says has not ended, and when it is due.

Slices of jobs, links in the making or on their way out, changes of plans, lost orders, and fees.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct
from sqlalchemy import BigInteger, Column, Connection, Integer, Table, bindparam, func, select, text

from domain.accounts.monthly_fee import MonthlyFee
from domain.cause import AHEAD_MAX
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.log import Recorded
from domain.lookups.bulk_job import BulkJob, slice_count
from projections.engine.database import from_micros, to_micros
from projections.engine.hot_reads import HotStatement, OneOf, run
from projections.engine.inserting import upsert
from projections.engine.read_model import ReadModel, execute_many
from projections.engine.shape import Stored

Kind = Literal["link", "plan_change", "lost_order", "slice", "fee"]

IDLE = timedelta(seconds=2)  # A worker that has it in hand has moved on by then.
# Whoever got its message has begun by then; with a beat after it, a lost one costs two seconds.
SOON = timedelta(seconds=0.5)
WHOLE, FEE = -1, -2  # The part of a link, change or lost order, and of a fee.


class Due(Struct, frozen=True):
    """A piece of work: a stream as a whole, or the slice of a job whose index is `part`."""

    id: UUID
    part: int
    owner: str  # See `owner_of`.
    begun_at: datetime
    due_at: datetime

    @property
    def kind(self) -> Kind:
        return self.owner.split()[0]  # type: ignore[return-value]  # `owner_of` put it there.


STORED = Stored(Due, part=Integer)


def owner_of(kind: Kind, organization_id: UUID) -> str:
    """Return whose turn it is: a query that steps from owner to owner needs one column for it."""
    return f"{kind} {organization_id.hex}"


def _idle(event: Any) -> datetime:
    return event.timestamp + IDLE  # type: ignore[no-any-return]  # every event has its moment


def _soon(event: Any) -> datetime:
    return event.timestamp + SOON  # type: ignore[no-any-return]  # every event has its moment


def _never(_: Any) -> None:
    return None


_until = attrgetter("until")  # Every intent has its end.

# When a stream's work is due after an event; None: it has ended. Other events change nothing.
DUE: Mapping[type[Event], Callable[[Any], datetime | None]] = {
    Link.Requested: _soon,
    Link.EsimReserved: _idle,
    Link.EndpointRequested: _until,
    Link.OrderRequested: _until,
    Link.OrderPlaced: _idle,
    Link.EndpointCreated: _idle,
    Link.Activated: _never,
    Link.ProvisioningFailed: lambda event: _soon(event) if event.iccid is not None else None,
    Link.EndpointLeftOver: _until,
    Link.EndpointRemoved: _soon,
    Link.EsimReleased: _never,
    Link.StatusRequested: _until,
    Link.StatusKept: _never,
    Link.Suspended: _never,
    Link.Reactivated: _never,
    Link.EndRequested: _until,
    Link.EndKept: _never,
    Link.Ended: _never,
    PlanChange.Requested: _soon,
    PlanChange.PlanRemovalStarted: _until,
    PlanChange.PlanAdditionStarted: _until,
    PlanChange.PlanRemovalDone: _idle,
    PlanChange.PlanAdditionDone: _idle,
    PlanChange.Failed: _soon,
    PlanChange.Finished: _never,
    LostOrder.Opened: lambda event: event.settled_at,
    LostOrder.Found: _soon,
    LostOrder.TakenBack: _soon,
    LostOrder.LeftOver: _soon,
    LostOrder.Settled: _never,
    BulkJob.Cancelled: _never,
    MonthlyFee.Due: lambda event: event.timestamp,
    MonthlyFee.Charged: _never,
}

KINDS: Mapping[Kind, type[Event]] = {
    "plan_change": PlanChange.Event,
    "lost_order": LostOrder.Event,
    "slice": BulkJob.Event,
    "fee": MonthlyFee.Event,
}
# Due times beyond `ahead` are those of a clock that was. A lost order may really wait for so long.
_IS_DUE = "(due_at <= :now OR (due_at > :ahead AND owner NOT LIKE 'lost_order%'))"
_EARLIEST = from_micros(0)


class DueList(ReadModel):
    """A row per piece of work; what has ended has none, so it stays as small as what is under way.

    A slice is due at once, in the order of the log.
    """

    name = "due"
    version = 2
    uses = (*DUE, BulkJob.Created, BulkJob.ItemsCompleted, BulkJob.ItemsFailed)

    def build(self) -> Sequence[Table]:
        """Define the table, and once the statements, which batches, messages and beats run."""
        self.rows = self.table(
            "due",
            *STORED.columns("id", "part"),
            Column("position", BigInteger, nullable=False),
            Column("item_count", Integer, nullable=False),
            self.index("due_in_turn", "owner", "due_at", "position", "part"),
        )
        columns, owner = self.rows.c, self.rows.c.owner == bindparam("owner")
        self._gone = HotStatement(self.rows.delete().where(OneOf(columns.id, "ended")))
        self._any = HotStatement(select(columns.part).where(columns.id == bindparam("of")).limit(1))
        self._items = HotStatement(select(func.sum(columns.item_count)).where(owner))
        self._all = select(*(columns[each] for each in STORED.names))
        first = self._all.where(owner, text(_IS_DUE)).limit(bindparam("most"))
        in_turn = (columns.due_at, columns.position, columns.part)
        self._first = HotStatement(first.order_by(*in_turn))
        # The skipped are one value: of values one by one a statement has 65,535 at most.
        fees = columns.part == FEE, ~OneOf(columns.owner, "skipped"), text(_IS_DUE)
        self._fees = HotStatement(
            self._all.where(*fees).order_by(*in_turn).limit(bindparam("most"))
        )
        # One step of the index for each owner, however many rows it has.
        next_one = select(columns.owner).where(text(_IS_DUE)).order_by(columns.owner).limit(1)
        start = next_one.where(columns.owner > bindparam("behind")).scalar_subquery()
        steps = select(start.label("owner")).cte("steps", recursive=True)
        after = next_one.where(columns.owner > steps.c.owner).scalar_subquery()
        steps = steps.union_all(select(after).where(steps.c.owner.is_not(None)))
        shown = text("(SELECT position FROM follower_positions WHERE name = 'due')")
        owners = select(steps.c.owner, shown).where(steps.c.owner.is_not(None))
        self._owners = HotStatement(owners)
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write for each piece of work what the last of its events in the batch says."""
        rows: dict[UUID, dict[int, dict[str, Any]]] = defaultdict(dict)
        ended: set[UUID] = set()
        fewer: Counter[tuple[UUID, int]] = Counter()
        for position, event in batch:
            stream_id, due_after = event.originator_id, DUE.get(type(event))
            match event:
                case BulkJob.Created():
                    for part in range(slice_count(event)):
                        count = min(event.slice_size, event.total_count - part * event.slice_size)
                        rows[stream_id][part] = _row(position, event, part, _EARLIEST, count)
                case BulkJob.ItemsCompleted() | BulkJob.ItemsFailed():
                    count = len(event.indexes)
                    if event.slice_index in rows[stream_id]:
                        rows[stream_id][event.slice_index]["item_count"] -= count
                    else:
                        fewer[stream_id, event.slice_index] += count
                case _ if due_after is None:
                    pass
                case _ if (due_at := due_after(event)) is None:
                    rows[stream_id].clear()  # Later events in the batch start a new row.
                    ended.add(stream_id)
                case _:
                    part = FEE if isinstance(event, MonthlyFee.Due) else WHOLE
                    row = _row(position, event, part, due_at)
                    row["begun_at"] = rows[stream_id].get(part, row)["begun_at"]
                    rows[stream_id][part] = row
        if ended:
            run(connection, self._gone, ended=[*ended])
        left = [row for parts in rows.values() for row in parts.values() if row["item_count"]]
        upsert(connection, self.rows, left, fixed=frozenset({"begun_at"}))
        self._take_off(connection, fewer)

    def _take_off(self, connection: Connection, fewer: Counter[tuple[UUID, int]]) -> None:
        """Count ended items of slices, and delete the slices that have none left."""
        columns = self.rows.c
        this = columns.id == bindparam("job"), columns.part == bindparam("slice")
        rows = [{"job": job, "slice": part, "by": by} for (job, part), by in fewer.items()]
        left = columns.item_count - bindparam("by", type_=Integer)
        execute_many(connection, self.rows.update().where(*this).values(item_count=left), rows)
        empty = self.rows.delete().where(*this, columns.item_count == 0)
        execute_many(connection, empty, [{"job": job, "slice": part} for job, part in fewer])

    def owners(
        self, connection: Connection, now: datetime, kind: str = ""
    ) -> tuple[list[str], int]:
        """Return who has something due, of a kind or a later one, and as of which position."""
        rows = run(connection, self._owners, behind=kind, **_moments(now)).fetchall()
        return [row[0] for row in rows], rows[0][1] if rows else 0

    def first(self, connection: Connection, owner: str, now: datetime, most: int) -> list[Due]:
        """Return what an owner has waiting longest."""
        return _read(run(connection, self._first, owner=owner, most=most, **_moments(now)))

    def fees(
        self, connection: Connection, now: datetime, skipped: Collection[str], most: int
    ) -> list[Due]:
        """Return the fees that fell due first, but those of some owners."""
        values = {"skipped": [*skipped], "most": most, **_moments(now)}
        return _read(run(connection, self._fees, **values))

    def knows(self, connection: Connection, stream_id: UUID) -> bool:
        return run(connection, self._any, of=stream_id).fetchone() is not None

    def items_of(self, connection: Connection, organization_id: UUID) -> int:
        """Return how many items of an organization's jobs have not ended."""
        found = run(connection, self._items, owner=owner_of("slice", organization_id))
        return int(found.fetchone()[0] or 0)

    def all(self, connection: Connection) -> list[Due]:
        """Return all work that has not ended but slices and fees, the oldest first."""
        columns = self.rows.c
        found = self._all.where(columns.part == WHOLE).order_by(columns.begun_at, columns.id)
        return _read(connection.execute(found))

    def oldest(self, connection: Connection) -> datetime | None:
        columns = self.rows.c
        oldest = select(func.min(columns.begun_at)).where(columns.part == WHOLE)
        begun_at: int | None = connection.execute(oldest).scalar_one()
        return from_micros(begun_at)


def _moments(now: datetime) -> dict[str, int]:
    return {"now": to_micros(now), "ahead": to_micros(now + AHEAD_MAX)}


def _read(rows: Iterable[Sequence[Any]]) -> list[Due]:
    return [*map(STORED.read, rows)]


def _row(position: int, event: Any, part: int, due_at: datetime, count: int = 1) -> dict[str, Any]:
    kind: Kind = next((kind for kind, of in KINDS.items() if isinstance(event, of)), "link")
    owner = owner_of(kind, event.organization_id)
    due = Due(event.originator_id, part, owner, event.timestamp, due_at)
    return {**STORED.row(due), "position": position, "item_count": count}
