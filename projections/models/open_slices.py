"""Open slices of bulk jobs: those with items that have not ended, and for which organization."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, Column, Connection, Integer, Table, Uuid, bindparam, select

from domain.ids import as_id
from domain.log.log import Recorded
from domain.lookups.bulk_job import BulkJob, slice_count
from projections.engine.hot_reads import HotStatement, run
from projections.engine.inserting import insert_many, upsert
from projections.engine.read_model import ReadModel, execute_many


class Slice(NamedTuple):
    """A part of a job that is worked on as a whole."""

    job_id: UUID
    slice_index: int


class OpenSlices(ReadModel):
    """A row per open slice, and a row per organization that has one; ended slices have none."""

    name = "open_slices"
    uses = (BulkJob.Created, BulkJob.ItemsCompleted, BulkJob.ItemsFailed, BulkJob.Cancelled)

    def build(self) -> Sequence[Table]:
        """Define both tables; they stay as small as the work that waits."""
        self.slices = self.table(
            "open_slices",
            Column("job_id", Uuid, primary_key=True),
            Column("slice_index", Integer, primary_key=True, autoincrement=False),
            Column("organization_id", Uuid, nullable=False),
            Column("position", BigInteger, nullable=False),
            Column("open_count", Integer, nullable=False),
            self.index("open_slices_in_order", "organization_id", "position", "slice_index"),
        )
        self.organizations = self.table(
            "open_items",
            Column("organization_id", Uuid, primary_key=True),
            Column("open_count", BigInteger, nullable=False),
        )
        columns = self.slices.c
        # Built once, because every message runs them.
        self._first = (
            select(columns.job_id, columns.slice_index)
            .where(columns.organization_id == bindparam("organization"))
            .order_by(columns.position, columns.slice_index)
            .limit(bindparam("count"))
        )
        self._any = select(columns.slice_index).where(columns.job_id == bindparam("job")).limit(1)
        self._gone = self.slices.delete().where(columns.job_id == bindparam("job"))
        owners = self.organizations.c
        self._owners = HotStatement(select(owners.organization_id))
        self._items = select(owners.open_count).where(
            owners.organization_id == bindparam("organization")
        )
        return [self.slices, self.organizations]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert the slices of new jobs, subtract ended items, and delete slices without items."""
        made: dict[Slice, dict[str, Any]] = {}
        ended: Counter[Slice] = Counter()
        cancelled: set[UUID] = set()
        changes: Counter[UUID] = Counter()
        for recorded in batch:
            event = recorded.event
            match event:
                case BulkJob.Created():
                    made |= {
                        Slice(row["job_id"], row["slice_index"]): row for row in _rows(recorded)
                    }
                    changes[event.organization_id] += event.total_count
                case BulkJob.ItemsCompleted() | BulkJob.ItemsFailed():
                    changes[event.organization_id] -= len(event.indexes)
                    this = Slice(event.originator_id, event.slice_index)
                    if this in made:
                        made[this]["open_count"] -= len(event.indexes)
                    else:
                        ended[this] += len(event.indexes)
                case BulkJob.Cancelled():
                    changes[event.organization_id] -= event.count
                    cancelled.add(event.originator_id)
        made = {this: row for this, row in made.items() if this.job_id not in cancelled}
        insert_many(connection, self.slices, [row for row in made.values() if row["open_count"]])
        self._take_off(connection, ended)
        execute_many(connection, self._gone, [{"job": each} for each in cancelled])
        self._count(connection, changes)

    def organizations_of(self, connection: Connection) -> list[UUID]:
        """Return the organizations that have open slices."""
        return [as_id(each) for (each,) in run(connection, self._owners)]

    def first(self, connection: Connection, organization_id: UUID, count: int) -> list[Slice]:
        """Return the oldest open slices of an organization."""
        values = {"organization": organization_id, "count": count}
        return [Slice(*row) for row in connection.execute(self._first, values)]

    def knows(self, connection: Connection, job_id: UUID) -> bool:
        """Tell whether a job has an open slice in this read model."""
        return connection.execute(self._any, {"job": job_id}).first() is not None

    def items_of(self, connection: Connection, organization_id: UUID) -> int:
        """Return how many items of an organization's jobs have not ended."""
        found = connection.execute(self._items, {"organization": organization_id})
        return found.scalar_one_or_none() or 0

    def _take_off(self, connection: Connection, ended: Counter[Slice]) -> None:
        columns = self.slices.c
        this = (columns.job_id == bindparam("job"), columns.slice_index == bindparam("slice"))
        rows = [
            {"job": each.job_id, "slice": each.slice_index, "count": count}
            for each, count in ended.items()
        ]
        fewer = (
            self.slices.update()
            .where(*this)
            .values(open_count=columns.open_count - bindparam("count"))
        )
        execute_many(connection, fewer, rows)
        empty = self.slices.delete().where(*this, columns.open_count == 0)
        execute_many(connection, empty, [{k: row[k] for k in ("job", "slice")} for row in rows])

    def _count(self, connection: Connection, changes: Counter[UUID]) -> None:
        columns = self.organizations.c
        rows = [{"organization_id": each, "open_count": changes[each]} for each in sorted(changes)]
        upsert(connection, self.organizations, rows, added=frozenset({"open_count"}))
        empty = self.organizations.delete().where(
            columns.organization_id == bindparam("owner"), columns.open_count == 0
        )
        execute_many(connection, empty, [{"owner": each} for each in changes])


def _rows(recorded: Recorded) -> list[dict[str, Any]]:
    event = recorded.event
    assert isinstance(event, BulkJob.Created)
    return [
        {
            "job_id": event.originator_id,
            "slice_index": index,
            "organization_id": event.organization_id,
            "position": recorded.position,
            "open_count": min(event.slice_size, event.total_count - index * event.slice_size),
        }
        for index in range(slice_count(event))
    ]
