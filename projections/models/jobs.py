"""Bulk jobs and their items; personal data stays sealed, so erasing a key erases it here too."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self, get_args
from uuid import UUID

from msgspec import Struct
from msgspec.structs import asdict, replace
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
    bindparam,
    func,
    literal,
    null,
    select,
    union_all,
)

from domain.accounts.operator_acts import Erasure
from domain.accounts.organization import Organization
from domain.log.aggregate import Event
from domain.log.log import Recorded
from domain.lookups.bulk_job import BulkJob
from domain.personal import Sealed
from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement, OneOf, run
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel, execute_many
from projections.engine.shape import Stored, stored


class Settlement(Struct, frozen=True):
    """Items that ended together; `errors` for failed ones, sealed results for the others."""

    job_id: UUID
    position: int  # 0 if it was read from the job's own stream.
    indexes: list[int]
    errors: list[str] | None
    results: Annotated[Sealed | None, stored("parts", "")]


JobStatus = Literal["pending", "processing", "completed", "failed", "cancelled"]
STATUSES: Sequence[JobStatus] = get_args(JobStatus)


class JobCounts(Struct):
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
    moved_at: datetime
    month: str  # The key of this month seals all its personal data.

    @classmethod
    def started(cls, event: BulkJob.Created) -> Self:
        at, price = event.timestamp, event.price
        return cls(
            id=event.originator_id,
            organization_id=event.organization_id,
            total_count=event.total_count,
            completed_count=0,
            failed_count=0,
            cancelled_count=0,
            item_price_micros=event.item_price_micros,
            currency=None if price is None else price.currency,
            transaction_id=None if price is None else price.transaction_id,
            by_hand_micros=0,
            created_at=at,
            finished_at=None,
            moved_at=at,
            month=event.personal.month,
        )

    def follow(self, event: Event) -> None:
        match event:
            case BulkJob.ItemsCompleted():
                self.completed_count += len(event.indexes)
            case BulkJob.ItemsFailed():
                self.failed_count += len(event.indexes)
            case BulkJob.Cancelled() | BulkJob.Finished():
                event.apply(self)
            case BulkJob.RefundedByHand():
                self.by_hand_micros += event.refund.amount_micros
        self.moved_at = event.timestamp

    @property
    def status(self) -> JobStatus:
        """The status; a job has ended when its last item has."""
        if self.finished_at is None:
            return "processing" if self.processed_count else "pending"
        if self.processed_count < self.total_count:
            return "cancelled"
        return "failed" if self.failed_count == self.total_count else "completed"

    @property
    def processed_count(self) -> int:
        return self.completed_count + self.failed_count

    @property
    def refunded_micros(self) -> int:
        lost_count = self.failed_count + self.cancelled_count
        return lost_count * self.item_price_micros + self.by_hand_micros


class JobRow(JobCounts):
    """One job and the outcomes of its items so far."""

    numbers: Sealed
    settlements: list[Settlement]


_COUNTS = ("total_count", "completed_count", "failed_count", "cancelled_count")
STORED = Stored(JobCounts, **dict.fromkeys(_COUNTS, Integer))
CHANGING = (*_COUNTS[1:], "by_hand_micros", "moved_at", "finished_at", "status")
FORGET_MAX = 500  # Jobs named in one statement.


PARTS = Stored(Settlement)


class Jobs(ReadModel):
    """A row per job and a row per settlement."""

    name = "jobs"
    version = 3
    uses = (BulkJob.Event, BulkJob.RefundedByHand, Erasure.Made, Organization.SandboxReset)

    def build(self) -> Sequence[Table]:
        parts = PARTS.columns("job_id", "position")
        self.jobs, self.settlements = self._rows(), self.table("job_settlements", *parts)
        columns = self.jobs.c
        self._shown = select(*(columns[name] for name in STORED.names))
        self._one = HotStatement(_whole_job(self.jobs, self.settlements))
        own = columns.id == bindparam("job"), columns.organization_id == bindparam("organization")
        self._counts = HotStatement(self._shown.where(*own))
        self._known = HotStatement(self._shown.where(OneOf(columns.id, "jobs")))
        change = self.jobs.update().where(columns.id == bindparam("job"))
        self._change = change.values({name: bindparam(f"new_{name}") for name in CHANGING})
        self._all = self._list_of()
        self._of_status = self._list_of(columns.status == bindparam("status"))
        return [self.jobs, self.settlements]

    def _rows(self) -> Table:
        """Define the table of jobs; unfinished ones have a separate index, which stays small."""
        columns = STORED.columns("id")
        finished_at = next(each for each in columns if each.name == "finished_at")
        return self.table(
            "jobs",
            *columns,
            Column("position", BigInteger, nullable=False),
            Column("status", String, nullable=False),
            Column("box", LargeBinary, nullable=False),
            self.index("jobs_unfinished", "moved_at", "id", where=finished_at.is_(None)),
            # A page is counted and found in these indexes alone; it reads only jobs that it shows.
            self.index("jobs_listed", "organization_id", "position", "month"),
            self.index("jobs_by_status", "organization_id", "status", "position", "month"),
        )

    def _list_of(self, *conditions: ColumnElement[bool]) -> tuple[HotStatement, HotStatement]:
        """Return what counts the jobs of an organization by month, and what reads a page."""
        columns = self.jobs.c
        theirs = columns.organization_id == bindparam("organization")
        counted = select(columns.month, func.count()).where(theirs, *conditions)
        found = select(columns.position).where(theirs, OneOf(columns.month, "months"), *conditions)
        found = found.order_by(columns.position.desc())
        found = found.limit(bindparam("most")).offset(bindparam("skipped"))
        shown = self._shown.where(theirs, columns.position.in_(found))
        page = HotStatement(shown.order_by(columns.position.desc()))
        return HotStatement(counted.group_by(columns.month)), page

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write the outcome of the batch: a row once, however many of its events move it."""
        for at, (_, event) in enumerate(batch):
            if isinstance(event, Erasure.Made | Organization.SandboxReset):
                self.project(connection, batch[:at])
                self._forget(connection, event)
                self.project(connection, batch[at + 1 :])
                return
        rows, new = self._read_older(connection, batch), list[dict[str, Any]]()
        older, settled = [*rows], list[dict[str, Any]]()
        for position, event in batch:
            match event:
                case BulkJob.Created():
                    rows[event.originator_id] = JobCounts.started(event)
                    sealed = {"position": position, "box": event.personal.box}
                    new.append({"id": event.originator_id, **sealed})
                case BulkJob.ItemsCompleted() | BulkJob.ItemsFailed():
                    part = Settlement(event.originator_id, position, *_outcome(event))
                    settled.append(PARTS.row(part))
            if event.originator_id in rows:
                rows[event.originator_id].follow(event)
        now = {each.id: {**STORED.row(each), "status": each.status} for each in rows.values()}
        insert_many(connection, self.jobs, [row | now[row["id"]] for row in new])
        insert_many(connection, self.settlements, settled)
        changed = [
            {"job": each, **{f"new_{name}": now[each][name] for name in CHANGING}} for each in older
        ]
        execute_many(connection, self._change, changed)

    def _forget(
        self, connection: Connection, event: Erasure.Made | Organization.SandboxReset
    ) -> None:
        """Delete the jobs that were erased one by one, or that have ended before a reset.

        Those of erased months stay unlisted.
        """
        jobs = self.jobs.c
        if isinstance(event, Organization.SandboxReset):
            theirs = jobs.organization_id == event.originator_id
            ended = select(jobs.id).where(theirs, jobs.finished_at.is_not(None))
            streams = [*connection.execute(ended.order_by(jobs.id)).scalars()]
        else:
            theirs = jobs.organization_id == event.organization_id
            streams = [each for part in event.parts for each in part.streams or ()]
        for start in range(0, len(streams), FORGET_MAX):
            some = streams[start : start + FORGET_MAX]
            gone = self.jobs.delete().where(theirs, jobs.id.in_(some)).returning(jobs.id)
            theirs_too = self.settlements.c.job_id.in_(connection.execute(gone).scalars().all())
            connection.execute(self.settlements.delete().where(theirs_too))

    def _read_older(
        self, connection: Connection, batch: Sequence[Recorded]
    ) -> dict[UUID, JobCounts]:
        """Return what is known of the jobs that began before the batch."""
        events = [each.event for each in batch if isinstance(each.event, self.uses)]
        new = {event.originator_id for event in events if isinstance(event, BulkJob.Created)}
        ids = {event.originator_id for event in events} - new
        found = map(STORED.read, run(connection, self._known, jobs=[*ids]) if ids else ())
        return {each.id: each for each in found}

    def get(self, database: Database, organization_id: UUID, job_id: UUID) -> JobRow | None:
        """Read one job of an organization with all ended items, as of one moment."""
        found = database.rows(self._one, job=job_id, organization=organization_id)
        return _read(found) if found else None

    def counts(self, database: Database, organization_id: UUID, job_id: UUID) -> JobCounts | None:
        """Read one job of an organization without its items."""
        found = database.rows(self._counts, job=job_id, organization=organization_id)
        return STORED.read(found[0]) if found else None

    def page(
        self,
        database: Database,
        organization_id: UUID,
        status: JobStatus | None,
        exists: Callable[[str], bool],
        part: slice,
    ) -> tuple[list[JobCounts], int]:
        """Return a part of an organization's jobs, newest first, and how many match in all.

        `exists` tells whether the personal data of a month still exists; other jobs are left out.
        """
        counted, page = self._all if status is None else self._of_status
        wanted: dict[str, Any] = {"organization": organization_id}
        if status is not None:
            wanted["status"] = status
        left = {month: count for month, count in database.rows(counted, **wanted) if exists(month)}
        total = sum(left.values())
        if part.start >= total:
            return [], total
        span = {"skipped": part.start, "most": part.stop - part.start}
        rows = database.rows(page, **wanted, months=[*left], **span)
        return [*map(STORED.read, rows)], total

    def all(
        self, connection: Connection, organization_id: UUID | None, *, unfinished: bool
    ) -> list[JobCounts]:
        """Return the jobs of one organization or of all, newest first; unfinished: oldest first."""
        columns = self.jobs.c
        if unfinished:
            ordered = self._shown.where(columns.finished_at.is_(None))
            ordered = ordered.order_by(columns.created_at, columns.position)
        else:
            ordered = self._shown.order_by(columns.position.desc())
        if organization_id is not None:
            ordered = ordered.where(columns.organization_id == organization_id)
        return [*map(STORED.read, connection.execute(ordered))]


def row_of(job: BulkJob) -> JobRow:
    """Return the row that the table would show for a job, made from its aggregate."""
    counts = replace(
        JobCounts.started(job.created),
        completed_count=len(job.completed),
        failed_count=len(job.failed),
        cancelled_count=job.cancelled_count,
        by_hand_micros=sum(each.refund.amount_micros for each in job.by_hand),
        finished_at=job.finished_at,
        moved_at=job.modified_on,
    )
    settlements = [Settlement(job.id, 0, *_outcome(event)) for event in job.settlements]
    return JobRow(**asdict(counts), numbers=job.created.personal, settlements=settlements)


def _outcome(
    event: BulkJob.ItemsCompleted | BulkJob.ItemsFailed,
) -> tuple[list[int], list[str] | None, Sealed | None]:
    if isinstance(event, BulkJob.ItemsFailed):
        return event.indexes, event.errors, None
    return event.indexes, None, event.personal


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
    ended = select(settlements).where(settlements.c.job_id == bindparam("job"))
    part = union_all(numbers, ended).subquery()
    counters = (jobs.c[name] for name in STORED.names)
    return (
        select(*counters, part)
        .join_from(jobs, part, part.c.job_id == jobs.c.id)
        .where(jobs.c.id == bindparam("job"), jobs.c.organization_id == bindparam("organization"))
        .order_by(part.c.position)
    )


def _read(rows: Sequence[Sequence[Any]]) -> JobRow:
    *_, month, box = rows[0]
    settlements = [PARTS.read(row[len(STORED.names) :]) for row in rows[1:]]
    counts = asdict(STORED.read(rows[0]))
    return JobRow(**counts, numbers=Sealed(month, box), settlements=settlements)
