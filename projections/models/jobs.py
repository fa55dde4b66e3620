"""Bulk jobs and their items; personal data stays sealed, so erasing a key erases it here too."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args
from uuid import UUID

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    LargeBinary,
    Select,
    String,
    Table,
    Uuid,
    bindparam,
    literal,
    null,
    select,
    union_all,
)

from domain.accounts.erasure import Erasure
from domain.log.aggregate import Event
from domain.log.log import Recorded
from domain.lookups.bulk_job import BulkJob
from domain.personal import Sealed
from projections.engine.database import Database, from_micros, to_micros
from projections.engine.hot_reads import HotStatement, OneOf, as_id, run
from projections.engine.inserting import insert_many, upsert
from projections.engine.read_model import ReadModel, execute_many


@dataclass(frozen=True, slots=True)
class Settlement:
    """Items that ended together; `errors` for failed ones, sealed results for the others."""

    indexes: list[int]
    errors: list[str] | None
    results: Sealed | None


JobStatus = Literal["pending", "processing", "completed", "failed", "cancelled"]
STATUSES: Sequence[JobStatus] = get_args(JobStatus)


@dataclass(frozen=True, slots=True)
class JobCounts:
    """One job, how many of its items have ended so far, and what was paid for it.

    A job that was free has neither transaction nor currency.
    """

    id: UUID
    organization_id: UUID
    total_count: int
    completed_count: int
    failed_count: int
    cancelled_count: int
    item_price_micros: int
    currency: str | None
    transaction_id: UUID | None
    by_hand_micros: int
    created_at: datetime
    finished_at: datetime | None
    month: str  # The key of this month seals all its personal data.

    @property
    def status(self) -> JobStatus:
        """The status; a job has ended when its last item has."""
        ended_count = self.completed_count + self.failed_count
        is_finished = self.finished_at is not None
        return _status(self.total_count, ended_count, self.failed_count, is_finished=is_finished)

    @property
    def refunded_micros(self) -> int:
        """What was refunded so far."""
        lost_count = self.failed_count + self.cancelled_count
        return lost_count * self.item_price_micros + self.by_hand_micros


@dataclass(frozen=True, slots=True)
class JobRow(JobCounts):
    """One job and the outcomes of its items so far."""

    numbers: Sealed
    settlements: list[Settlement]


@dataclass(frozen=True, slots=True)
class UnfinishedJob:
    """A job that has not ended, and when it last moved."""

    id: UUID
    moved_at: datetime


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job as operators list it."""

    id: UUID
    organization_id: UUID
    status: JobStatus
    total_count: int
    processed_count: int
    created_at: datetime
    moved_at: datetime
    finished_at: datetime | None


_COUNTS = ("total_count", "completed_count", "failed_count", "cancelled_count")
_COUNTERS = (
    *_COUNTS,
    "item_price_micros",
    "currency",
    "transaction_id",
    "by_hand_micros",
    "created_at",
    "finished_at",
    "month",
)
# Columns that events change, and other columns of an older job that are read for that.
_CHANGING = (
    "status",
    *_COUNTS[1:],
    "by_hand_micros",
    "moved_at",
    "finished_at",
)
_KEPT = ("id", "organization_id", "month", "total_count")
FORGET_AT_ONCE = 500  # Jobs named in one statement.
_PARTS = ("job_id", "position", "indexes", "errors", "month", "box")


class Jobs(ReadModel):
    """A row per job and a row per settlement; the jobs of an organization are counted by status."""

    name = "jobs"
    version = 2
    uses = (BulkJob.Event, BulkJob.RefundedByHand, Erasure.Made)

    def build(self) -> Sequence[Table]:
        """Define the tables and the statements that run often."""
        self.jobs, self.settlements, self.counted = self._rows(), self._parts(), self._tallies()
        columns = self.jobs.c
        self._one = HotStatement(_whole_job(self.jobs, self.settlements))
        own = columns.id == bindparam("job"), columns.organization_id == bindparam("organization")
        self._counts = HotStatement(select(*(columns[name] for name in _COUNTERS)).where(*own))
        # Built once, because the sweep runs this each second.
        open_jobs = select(columns.id, columns.moved_at).where(columns.finished_at.is_(None))
        page = open_jobs.order_by(columns.moved_at, columns.id).limit(bindparam("most"))
        self._idle = page.where(columns.moved_at <= bindparam("moment"))
        self._build_lists()
        return [self.jobs, self.settlements, self.counted]

    def _rows(self) -> Table:
        """Define the table of jobs; unfinished ones have a separate index, which stays small."""
        finished_at = Column("finished_at", BigInteger)
        return self.table(
            "jobs",
            Column("id", Uuid, primary_key=True),
            Column("organization_id", Uuid, nullable=False),
            Column("position", BigInteger, nullable=False),
            Column("status", String, nullable=False),
            *(Column(name, Integer, nullable=False) for name in _COUNTS),
            Column("item_price_micros", BigInteger, nullable=False),
            Column("currency", String),
            Column("transaction_id", Uuid),
            Column("by_hand_micros", BigInteger, nullable=False),
            Column("created_at", BigInteger, nullable=False),
            Column("moved_at", BigInteger, nullable=False),
            finished_at,
            Column("month", String, nullable=False),
            Column("box", LargeBinary, nullable=False),
            self.index("jobs_unfinished", "moved_at", "id", where=finished_at.is_(None)),
            # A page finds its rows in these indexes alone, so it reads only jobs that it shows.
            self.index("jobs_listed", "organization_id", "position", "month"),
            self.index("jobs_by_status", "organization_id", "status", "position", "month"),
        )

    def _parts(self) -> Table:
        return self.table(
            "job_settlements",
            Column("job_id", Uuid, primary_key=True),
            Column("position", BigInteger, primary_key=True, autoincrement=False),
            Column("indexes", String, nullable=False),
            Column("errors", String),
            Column("month", String),
            Column("box", LargeBinary),
        )

    def _tallies(self) -> Table:
        return self.table(
            "job_counts",
            Column("organization_id", Uuid, primary_key=True),
            Column("month", String, primary_key=True),
            *(Column(status, BigInteger, nullable=False) for status in STATUSES),
        )

    def _build_lists(self) -> None:
        """Build the statements of batches and of lists once."""
        columns = self.jobs.c
        known = select(*(columns[name] for name in (*_KEPT, *_CHANGING)))
        self._known = HotStatement(known.where(OneOf(columns.id, "jobs")))
        change = self.jobs.update().where(columns.id == bindparam("job"))
        self._change = change.values({name: bindparam(f"new_{name}") for name in _CHANGING})
        months = [self.counted.c[name] for name in ("month", *STATUSES)]
        theirs = self.counted.c.organization_id == bindparam("organization")
        self._months = HotStatement(select(*months).where(theirs))
        self._all = self._page_of()
        self._of_status = self._page_of(columns.status == bindparam("status"))

    def _page_of(self, *conditions: ColumnElement[bool]) -> HotStatement:
        columns = self.jobs.c
        theirs = columns.organization_id == bindparam("organization")
        found = select(columns.position).where(theirs, OneOf(columns.month, "months"), *conditions)
        found = found.order_by(columns.position.desc())
        found = found.limit(bindparam("most")).offset(bindparam("skipped"))
        shown = select(columns.id, *(columns[name] for name in _COUNTERS))
        shown = shown.where(theirs, columns.position.in_(found))
        return HotStatement(shown.order_by(columns.position.desc()))

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write the outcome of the batch: a row once, however many of its events move it."""
        for at, (_, event) in enumerate(batch):
            if isinstance(event, Erasure.Made):
                self.project(connection, batch[:at])
                self._forget(connection, event)
                self.project(connection, batch[at + 1 :])
                return
        rows, settled = dict[UUID, dict[str, Any]](), []
        older = self._read_older(connection, batch)
        rows |= {job_id: dict(row) for job_id, row in older.items()}
        for recorded in batch:
            event = recorded.event
            match event:
                case BulkJob.Created():
                    rows[event.originator_id] = _job(recorded.position, event)
                case BulkJob.ItemsCompleted() | BulkJob.ItemsFailed():
                    settled.append(_settlement(recorded.position, event))
            if event.originator_id in rows:
                _move(rows[event.originator_id], event)
        insert_many(connection, self.jobs, [row for each, row in rows.items() if each not in older])
        insert_many(connection, self.settlements, settled)
        changed = [_changed(rows[job_id]) for job_id in older]
        execute_many(connection, self._change, changed)
        moved = _moved_counts(older.values(), rows.values())
        upsert(connection, self.counted, moved, added=frozenset(STATUSES))

    def _forget(self, connection: Connection, erasure: Erasure.Made) -> None:
        """Delete the jobs that were erased one by one; those of erased months stay unlisted."""
        jobs, theirs = self.jobs.c, self.jobs.c.organization_id == erasure.organization_id
        streams = [each for part in erasure.parts for each in part.streams or ()]
        for start in range(0, len(streams), FORGET_AT_ONCE):
            some = streams[start : start + FORGET_AT_ONCE]
            counted = (jobs.id, jobs.organization_id, jobs.month, jobs.status)
            gone = self.jobs.delete().where(theirs, jobs.id.in_(some)).returning(*counted)
            rows = [row._asdict() for row in connection.execute(gone)]
            theirs_too = self.settlements.c.job_id.in_([row["id"] for row in rows])
            connection.execute(self.settlements.delete().where(theirs_too))
            upsert(connection, self.counted, _moved_counts(rows, []), added=frozenset(STATUSES))

    def _read_older(
        self, connection: Connection, batch: Sequence[Recorded]
    ) -> Mapping[UUID, dict[str, Any]]:
        """Return what is known of the jobs that began before the batch."""
        events = [each.event for each in batch if isinstance(each.event, self.uses)]
        new = {event.originator_id for event in events if isinstance(event, BulkJob.Created)}
        ids = {event.originator_id for event in events} - new
        if not ids:
            return {}
        found = run(connection, self._known, jobs=[*ids])
        rows = [dict(zip((*_KEPT, *_CHANGING), row, strict=True)) for row in found]
        ids_of = ({name: as_id(row[name]) for name in ("id", "organization_id")} for row in rows)
        return {found["id"]: row | found for row, found in zip(rows, ids_of, strict=True)}

    def get(self, database: Database, organization_id: UUID, job_id: UUID) -> JobRow | None:
        """Read one job of an organization with all ended items, as of one moment."""
        found = database.rows(self._one, job=job_id, organization=organization_id)
        return _read(organization_id, job_id, found) if found else None

    def counts(self, database: Database, organization_id: UUID, job_id: UUID) -> JobCounts | None:
        """Read one job of an organization without its items."""
        found = database.rows(self._counts, job=job_id, organization=organization_id)
        return JobCounts(**_counts_of(organization_id, job_id, found[0])) if found else None

    def page(  # noqa: PLR0913  # Whose jobs, which of them, and which page.
        self,
        database: Database,
        organization_id: UUID,
        status: JobStatus | None,
        is_kept: Callable[[str], bool],
        *,
        offset: int,
        limit: int,
    ) -> tuple[list[JobCounts], int]:
        """Return one page of an organization's jobs, newest first, and how many match in all.

        `is_kept` tells whether the personal data of a month still exists; other jobs are left out.
        """
        found = database.rows(self._months, organization=organization_id)
        kept = [row for row in found if is_kept(row[0])]
        months = [month for month, *_ in kept]
        counts = [dict(zip(STATUSES, row[1:], strict=True)) for row in kept]
        total = sum(sum(each.values()) if status is None else each[status] for each in counts)
        if offset >= total:
            return [], total
        wanted = {"organization": organization_id, "months": months}
        page = {"most": limit, "skipped": offset}
        if status is None:
            rows = database.rows(self._all, **wanted, **page)
        else:
            rows = database.rows(self._of_status, **wanted, **page, status=status)
        return [
            JobCounts(**_counts_of(organization_id, as_id(row[0]), row[1:])) for row in rows
        ], total

    def unfinished(
        self, connection: Connection, now: datetime, limit: int, idle: timedelta = timedelta(0)
    ) -> list[UnfinishedJob]:
        """Return unfinished jobs that have not moved for `idle`, the longest idle first."""
        values = {"moment": to_micros(now - idle), "most": limit}
        rows = connection.execute(self._idle, values)
        return [UnfinishedJob(row.id, from_micros(row.moved_at)) for row in rows]

    def all(
        self, connection: Connection, organization_id: UUID | None, *, unfinished: bool
    ) -> list[ListedJob]:
        """Return the jobs of one organization or of all, newest first; unfinished: oldest first."""
        columns = self.jobs.c
        processed = columns.completed_count + columns.failed_count
        facts = (columns.id, columns.organization_id, columns.status, columns.total_count)
        moments = (columns.created_at, columns.moved_at, columns.finished_at)
        statement = select(*facts, processed, *moments).order_by(columns.position.desc())
        if unfinished:
            statement = statement.where(columns.finished_at.is_(None))
            statement = statement.order_by(None).order_by(columns.created_at, columns.position)
        if organization_id is not None:
            statement = statement.where(columns.organization_id == organization_id)
        rows = connection.execute(statement).all()
        return [ListedJob(*row[:5], *map(from_micros, row[5:])) for row in rows]


def row_of(job: BulkJob) -> JobRow:
    """Return the row that the table would show for a job, made from its aggregate."""
    price = job.created.price
    return JobRow(
        id=job.id,
        organization_id=job.organization_id,
        total_count=job.created.total_count,
        completed_count=len(job.completed),
        failed_count=len(job.failed),
        cancelled_count=job.cancelled_count,
        item_price_micros=job.created.item_price_micros,
        currency=None if price is None else price.currency,
        transaction_id=None if price is None else price.transaction_id,
        by_hand_micros=sum(each.refund.amount_micros for each in job.by_hand),
        created_at=job.created_on,
        finished_at=job.finished_at,
        month=job.created.personal.month,
        numbers=job.created.personal,
        settlements=[
            Settlement(event.indexes, event.errors, None)
            if isinstance(event, BulkJob.ItemsFailed)
            else Settlement(event.indexes, None, event.personal)
            for event in job.settlements
        ],
    )


def _status(total: int, ended: int, failed: int, *, is_finished: bool) -> JobStatus:
    """Return the status of a job by its counts; `ended` items have an outcome."""
    if not is_finished:
        return "processing" if ended else "pending"
    if ended < total:
        return "cancelled"
    return "failed" if failed == total else "completed"


def _job(position: int, event: BulkJob.Created) -> dict[str, Any]:
    at, price = to_micros(event.timestamp), event.price
    return {
        "id": event.originator_id,
        "organization_id": event.organization_id,
        "position": position,
        "status": "pending",
        "total_count": event.total_count,
        "completed_count": 0,
        "failed_count": 0,
        "cancelled_count": 0,
        "item_price_micros": event.item_price_micros,
        "currency": None if price is None else price.currency,
        "transaction_id": None if price is None else price.transaction_id,
        "by_hand_micros": 0,
        "created_at": at,
        "moved_at": at,
        "finished_at": None,
        "month": event.personal.month,
        "box": event.personal.box,
    }


def _settlement(
    position: int, event: BulkJob.ItemsCompleted | BulkJob.ItemsFailed
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "job_id": event.originator_id,
        "position": position,
        "indexes": msgspec.json.encode(event.indexes).decode(),
        "errors": None,
        "month": None,
        "box": None,
    }
    if isinstance(event, BulkJob.ItemsFailed):
        return row | {"errors": msgspec.json.encode(event.errors).decode()}
    return row | {"month": event.personal.month, "box": event.personal.box}


def _move(row: dict[str, Any], event: Event) -> None:
    """Change the row of a job as an event of it says."""
    at = to_micros(event.timestamp)
    match event:
        case BulkJob.ItemsCompleted():
            row["completed_count"] += len(event.indexes)
        case BulkJob.ItemsFailed():
            row["failed_count"] += len(event.indexes)
        case BulkJob.Cancelled():
            row["cancelled_count"] = event.count
        case BulkJob.RefundedByHand():
            row["by_hand_micros"] += event.refund.amount_micros
    if isinstance(event, BulkJob.Finished | BulkJob.Cancelled):
        row["finished_at"] = at
    row["moved_at"] = at
    row["status"] = _status(
        row["total_count"],
        row["completed_count"] + row["failed_count"],
        row["failed_count"],
        is_finished=row["finished_at"] is not None,
    )


def _changed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"job": row["id"], **{f"new_{name}": row[name] for name in _CHANGING}}


def _moved_counts(
    before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return what to add to the counts of organizations, by month and status."""
    moved = Counter((row["organization_id"], row["month"], row["status"]) for row in after)
    moved.subtract((row["organization_id"], row["month"], row["status"]) for row in before)
    keys = sorted({key[:2] for key, count in moved.items() if count})
    return [
        {"organization_id": owner, "month": month}
        | {status: moved[owner, month, status] for status in STATUSES}
        for owner, month in keys
    ]


def _whole_job(jobs: FromClause, settlements: FromClause) -> Select[Any]:
    """Select the counters beside each settlement; the first row has the numbers as well.

    One statement reads all parts, so they are as of one moment. The numbers come only once, because
    they are long.
    """
    numbers = select(
        jobs.c.id.label("job_id"),
        literal(-1).label("position"),
        null().label("indexes"),
        null().label("errors"),
        jobs.c.month,
        jobs.c.box,
    ).where(jobs.c.id == bindparam("job"))
    ended = select(*(settlements.c[name] for name in _PARTS)).where(
        settlements.c.job_id == bindparam("job")
    )
    part = union_all(numbers, ended).subquery()
    counters = (jobs.c[name] for name in _COUNTERS)
    return (
        select(*counters, part.c.indexes, part.c.errors, part.c.month, part.c.box)
        .join_from(jobs, part, part.c.job_id == jobs.c.id)
        .where(jobs.c.id == bindparam("job"), jobs.c.organization_id == bindparam("organization"))
        .order_by(part.c.position)
    )


def _read(organization_id: UUID, job_id: UUID, rows: Sequence[Sequence[Any]]) -> JobRow:
    *_, month, box = rows[0]
    return JobRow(
        **_counts_of(organization_id, job_id, rows[0]),
        numbers=Sealed(month, box),
        settlements=[_read_settlement(*row[len(_COUNTERS) :]) for row in rows[1:]],
    )


def _counts_of(organization_id: UUID, job_id: UUID, row: Sequence[Any]) -> dict[str, Any]:
    found = dict(zip(_COUNTERS, row, strict=False))
    finished_at, paid_by = found["finished_at"], found["transaction_id"]
    return {
        **found,
        "id": job_id,
        "organization_id": organization_id,
        "transaction_id": None if paid_by is None else as_id(paid_by),
        "created_at": from_micros(found["created_at"]),
        "finished_at": from_micros(finished_at),
    }


def _read_settlement(
    indexes: str, errors: str | None, month: str | None, box: bytes | None
) -> Settlement:
    told = None if errors is None else msgspec.json.decode(errors)
    results = None if month is None or box is None else Sealed(month, box)
    return Settlement(msgspec.json.decode(indexes), told, results)
