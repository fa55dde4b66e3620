"""Links, plan changes and lost orders whose work has not ended, and when each is due again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    String,
    Table,
    Uuid,
    bindparam,
    func,
    select,
)

from domain.cause import AHEAD_MAX
from domain.ids import as_id
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.log import Recorded
from projections.engine.database import from_micros, to_micros
from projections.engine.hot_reads import HotStatement, OneOf, run
from projections.engine.inserting import upsert
from projections.engine.read_model import ReadModel

Kind = Literal["link", "plan_change", "lost_order"]

IDLE = timedelta(seconds=2)  # A living worker has moved on by then.
SOON = timedelta(seconds=1)  # When cleaning up after a failure is first due.


class UnfinishedWork(NamedTuple):
    """A link, plan change or lost order whose work has not ended."""

    kind: Kind
    id: UUID
    begun_at: datetime
    due_at: datetime


def _idle(event: Any) -> datetime:
    return event.timestamp + IDLE  # type: ignore[no-any-return]  # every event has its moment


def _soon(event: Any) -> datetime:
    return event.timestamp + SOON  # type: ignore[no-any-return]  # every event has its moment


def _until(event: Any) -> datetime:
    return event.until  # type: ignore[no-any-return]  # every intent has its end


def _never(_: Any) -> None:
    return None


# When a stream's work is due after an event; None: it has ended. Other events change nothing.
DUE: Mapping[type[Event], Callable[[Any], datetime | None]] = {
    Link.Requested: _idle,
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
    PlanChange.Requested: _idle,
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
}


KINDS: Mapping[Kind, type[Event]] = {
    "plan_change": PlanChange.Event,
    "lost_order": LostOrder.Event,
}


class Unfinished(ReadModel):
    """A row per unfinished link, plan change and lost order; ended ones have none."""

    name = "unfinished"
    uses = (*DUE,)

    def build(self) -> Sequence[Table]:
        """Define the table; it stays as small as the work under way."""
        self.rows = self.table(
            "unfinished",
            Column("id", Uuid, primary_key=True),
            Column("kind", String, nullable=False),
            Column("begun_at", BigInteger, nullable=False),
            Column("due_at", BigInteger, nullable=False),
            self.index("unfinished_by_due", "due_at", "id"),
        )
        columns = self.rows.c
        # Built once: every batch with such events runs this, and the sweep runs the others each
        # second.
        self._gone = HotStatement(self.rows.delete().where(OneOf(columns.id, "ended")))
        self._all = select(columns.kind, columns.id, columns.begun_at, columns.due_at)
        page = self._all.order_by(columns.due_at, columns.id).limit(bindparam("most"))
        self._overdue = HotStatement(page.where(columns.due_at <= bindparam("moment")))
        # A lost order may really wait for long, and loses nothing meanwhile.
        waits_long = columns.kind == "lost_order"
        ahead = page.where(columns.due_at > bindparam("moment"), ~waits_long)
        self._from_ahead = HotStatement(ahead)
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write for each stream what the last of its events in the batch says."""
        rows: dict[UUID, dict[str, Any]] = {}
        ended: set[UUID] = set()
        for recorded in batch:
            event, stream_id = recorded.event, recorded.event.originator_id
            if type(event) not in DUE:
                continue
            due_at = DUE[type(event)](event)
            if due_at is None:  # Later events in the batch start a new row.
                rows.pop(stream_id, None)
                ended.add(stream_id)
            else:
                begun_at = rows.get(stream_id, {}).get("begun_at", to_micros(event.timestamp))
                rows[stream_id] = {**_row(event, due_at), "begun_at": begun_at}
        if ended:
            run(connection, self._gone, ended=[*ended])
        upsert(connection, self.rows, [*rows.values()], kept=frozenset({"begun_at"}))

    def due(self, connection: Connection, now: datetime, limit: int) -> list[UnfinishedWork]:
        """Return the work that is due, the longest overdue first.

        A due time beyond AHEAD_MAX counts as due too, except that of a lost order.
        """
        found = _page(connection, self._overdue, now, limit)
        return found + _page(connection, self._from_ahead, now + AHEAD_MAX, limit - len(found))

    def all(self, connection: Connection) -> list[UnfinishedWork]:
        """Return all work that has not ended, the oldest first."""
        ordered = self._all.order_by(self.rows.c.begun_at, self.rows.c.id)
        return _read(connection.execute(ordered))

    def oldest(self, connection: Connection) -> datetime | None:
        """Return when the oldest unfinished work began."""
        oldest = select(func.min(self.rows.c.begun_at))
        begun_at: int | None = connection.execute(oldest).scalar_one()
        return from_micros(begun_at)


def _page(
    connection: Connection, which: HotStatement, moment: datetime, limit: int
) -> list[UnfinishedWork]:
    return _read(run(connection, which, moment=to_micros(moment), most=limit))


def _read(rows: Iterable[Sequence[Any]]) -> list[UnfinishedWork]:
    return [UnfinishedWork(each[0], as_id(each[1]), *map(from_micros, each[2:])) for each in rows]


def _row(event: Event, due_at: datetime) -> dict[str, Any]:
    return {
        "id": event.originator_id,
        "kind": next((kind for kind, of in KINDS.items() if isinstance(event, of)), "link"),
        "due_at": to_micros(due_at),
    }
