"""Bulk jobs and their items; personal data stays sealed, so erasing a key erases it here too."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
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

from domain.cause import AHEAD_MAX
from domain.log.log import Recorded
from domain.lookups.bulk_job import BulkJob
from domain.personal import Sealed
from projections.engine.database import Database, from_micros, to_micros
from projections.engine.hot_reads import HotStatement
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel, execute_many


@dataclass(frozen=True, slots=True)
class Settlement:
    """Items that ended together; `errors` for failed ones, sealed results for the others."""

    indexes: list[int]
    errors: list[str] | None
    results: Sealed | None


@dataclass(frozen=True, slots=True)
class JobCounts:
    """One job, and how many of its items have ended so far."""

    id: UUID
    organization_id: UUID
    total_count: int
    completed_count: int
    failed_count: int
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobRow(JobCounts):
    """One job and what has become of its items so far."""

    numbers: Sealed
    settlements: list[Settlement]


@dataclass(frozen=True, slots=True)
class UnfinishedJob:
    """A job that has not ended, and when it last moved."""

    id: UUID
    moved_at: datetime


_COUNTERS = ("total_count", "completed_count", "failed_count", "created_at", "finished_at")
_PARTS = ("job_id", "position", "indexes", "errors", "month", "box")


class Jobs(ReadModel):
    """A row per job and a row per settlement."""

    name = "jobs"
    uses = (BulkJob.Event,)

    def build(self) -> Sequence[Table]:
        """Define both tables; unfinished jobs have a separate index, which stays small."""
        finished_at = Column("finished_at", BigInteger)
        self.jobs = self.table(
            "jobs",
            Column("id", Uuid, primary_key=True),
            Column("organization_id", Uuid, nullable=False),
            Column("total_count", Integer, nullable=False),
            Column("completed_count", Integer, nullable=False),
            Column("failed_count", Integer, nullable=False),
            Column("created_at", BigInteger, nullable=False),
            Column("moved_at", BigInteger, nullable=False),
            finished_at,
            Column("month", String, nullable=False),
            Column("box", LargeBinary, nullable=False),
            self.index(
                "jobs_unfinished",
                "moved_at",
                "id",
                sqlite_where=finished_at.is_(None),
                postgresql_where=finished_at.is_(None),
            ),
        )
        self.settlements = self.table(
            "job_settlements",
            Column("job_id", Uuid, primary_key=True),
            Column("position", BigInteger, primary_key=True, autoincrement=False),
            Column("indexes", String, nullable=False),
            Column("errors", String),
            Column("month", String),
            Column("box", LargeBinary),
        )
        self._one, self._counts = _statements(self.jobs, self.settlements)
        columns = self.jobs.c
        # Built once, because the sweep runs both each second.
        open_jobs = select(columns.id, columns.moved_at).where(finished_at.is_(None))
        page = open_jobs.order_by(columns.moved_at, columns.id).limit(bindparam("most"))
        self._idle = page.where(columns.moved_at <= bindparam("moment"))
        self._from_ahead = page.where(columns.moved_at > bindparam("moment"))
        return [self.jobs, self.settlements]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert jobs and settlements, then move the counters, each kind in one statement."""
        created, settled, moved = [], [], []
        for recorded in batch:
            event = recorded.event
            match event:
                case BulkJob.Created():
                    created.append(_job(event))
                case BulkJob.ItemsCompleted() | BulkJob.ItemsFailed():
                    settled.append(_settlement(recorded.position, event))
            if isinstance(event, BulkJob.Event):
                moved.append(_move(event))
        insert_many(connection, self.jobs, created)
        insert_many(connection, self.settlements, settled)
        columns = self.jobs.c
        change = self.jobs.update().where(columns.id == bindparam("job_id"))
        change = change.values(
            completed_count=columns.completed_count + bindparam("completed"),
            failed_count=columns.failed_count + bindparam("failed"),
            moved_at=bindparam("at"),
            finished_at=bindparam("ended"),
        )
        execute_many(connection, change, moved)

    def get(self, database: Database, organization_id: UUID, job_id: UUID) -> JobRow | None:
        """Read one job of an organization with all ended items, as of one moment."""
        found = database.rows(self._one, job=job_id, organization=organization_id)
        return _read(organization_id, job_id, found) if found else None

    def counts(self, database: Database, organization_id: UUID, job_id: UUID) -> JobCounts | None:
        """Read one job of an organization without its items."""
        found = database.rows(self._counts, job=job_id, organization=organization_id)
        return JobCounts(**_counts_of(organization_id, job_id, found[0])) if found else None

    def unfinished(
        self, connection: Connection, now: datetime, limit: int, idle: timedelta = timedelta(0)
    ) -> list[UnfinishedJob]:
        """Return unfinished jobs that have not moved for `idle`, the longest idle first.

        A job that moved in the far future was written before a clock was set back; it counts as
        idle.
        """
        found = _page(connection, self._idle, now - idle, limit)
        return found + _page(connection, self._from_ahead, now + AHEAD_MAX, limit - len(found))


def row_of(job: BulkJob) -> JobRow:
    """Return the row that the table would show for a job, made from its aggregate."""
    return JobRow(
        id=job.id,
        organization_id=job.organization_id,
        total_count=job.created.total_count,
        completed_count=len(job.completed),
        failed_count=len(job.failed),
        created_at=job.created_on,
        finished_at=job.finished_at,
        numbers=job.created.personal,
        settlements=[
            Settlement(event.indexes, event.errors, None)
            if isinstance(event, BulkJob.ItemsFailed)
            else Settlement(event.indexes, None, event.personal)
            for event in job.settlements
        ],
    )


def _page(
    connection: Connection, which: Select[Any], moment: datetime, limit: int
) -> list[UnfinishedJob]:
    rows = connection.execute(which, {"moment": to_micros(moment), "most": limit})
    return [UnfinishedJob(row.id, from_micros(row.moved_at)) for row in rows]


def _job(event: BulkJob.Created) -> dict[str, Any]:
    at = to_micros(event.timestamp)
    return {
        "id": event.originator_id,
        "organization_id": event.organization_id,
        "total_count": event.total_count,
        "completed_count": 0,
        "failed_count": 0,
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


def _move(event: BulkJob.Event) -> dict[str, Any]:
    at = to_micros(event.timestamp)
    return {
        "job_id": event.originator_id,
        "completed": len(event.indexes) if isinstance(event, BulkJob.ItemsCompleted) else 0,
        "failed": len(event.indexes) if isinstance(event, BulkJob.ItemsFailed) else 0,
        "at": at,
        "ended": at if isinstance(event, BulkJob.Finished) else None,
    }


def _statements(jobs: Table, settlements: Table) -> tuple[HotStatement, HotStatement]:
    """Return the statement that reads a whole job, and the one that reads only its counters."""
    own = jobs.c.id == bindparam("job"), jobs.c.organization_id == bindparam("organization")
    counters = select(*(jobs.c[name] for name in _COUNTERS)).where(*own)
    return HotStatement(_statement(jobs, settlements)), HotStatement(counters)


def _statement(jobs: FromClause, settlements: FromClause) -> Select[Any]:
    """Select the counters beside each settlement; the first row has the numbers as well.

    One statement, so that all parts are of the same moment; the numbers come once, as they are
    long.
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
    total, completed, failed, created_at, finished_at = row[: len(_COUNTERS)]
    return {
        "id": job_id,
        "organization_id": organization_id,
        "total_count": total,
        "completed_count": completed,
        "failed_count": failed,
        "created_at": from_micros(created_at),
        "finished_at": None if finished_at is None else from_micros(finished_at),
    }


def _read_settlement(
    indexes: str, errors: str | None, month: str | None, box: bytes | None
) -> Settlement:
    told = None if errors is None else msgspec.json.decode(errors)
    results = None if month is None or box is None else Sealed(month, box)
    return Settlement(msgspec.json.decode(indexes), told, results)
