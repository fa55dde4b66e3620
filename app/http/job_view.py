"""A bulk job as its owner reads it: opened, put in order and encoded without a step per field."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from app.container import Container
from app.freshness import wait_until_projected
from app.http.envelope import format_time
from domain.bulk_job import BulkJob, PersonalNumbers
from domain.errors import NotFound
from domain.ports import Sealed
from projections.jobs import JobRow, Settlement, row_of

JobStatus = Literal["pending", "processing", "completed", "failed"]


class Item(msgspec.Struct, gc=False):
    """One number of a job; `result` or `error` is there when it has ended."""

    phone_number: str
    status: Literal["pending", "completed", "failed"]
    result: msgspec.Raw | None  # The facts of the number, as they were stored.
    error: str | None


class Results(msgspec.Struct):
    """`PersonalResults` with facts that are passed on as they are.

    Stored and shown they have one form: fields that are not known are left out of both.
    """

    facts: list[msgspec.Raw]


class JobReply(msgspec.Struct):
    """The `data` of a job read."""

    job_id: UUID
    status: JobStatus
    total_count: int
    processed_count: int
    failed_count: int
    created_at: str
    finished_at: str | None
    items: list[Item]


_ENCODER = msgspec.json.Encoder()
_NUMBERS = msgspec.json.Decoder(PersonalNumbers)
_RESULTS = msgspec.json.Decoder(Results)


def find_job(parts: Container, organization_id: UUID, job_id: UUID) -> JobRow:
    """Read a job of an organization; one that its table does not have yet comes from the log.

    The table is waited for: what the log tells now, the table might take back for a moment.
    """
    row = _stored_job(parts, organization_id, job_id)
    if row is None:
        wait_until_projected(parts.log, parts.views, parts.positions, [parts.jobs.name])
        row = _stored_job(parts, organization_id, job_id)
    if row is not None:
        return row
    job = parts.log.find(BulkJob, job_id)
    if job is None or job.organization_id != organization_id:
        raise NotFound
    return row_of(job)


def _stored_job(parts: Container, organization_id: UUID, job_id: UUID) -> JobRow | None:
    return parts.jobs.get(parts.views, organization_id, job_id)


def status_of(row: JobRow) -> JobStatus:
    """Return where a job stands; it has ended when its last item has."""
    if row.finished_at is not None:
        return "failed" if row.failed_count == row.total_count else "completed"
    return "processing" if row.completed_count + row.failed_count else "pending"


def encode_job(parts: Container, row: JobRow) -> bytes:
    """Return the JSON of a job; NotFound once its numbers have been erased."""
    numbers = _NUMBERS.decode(_open(parts, row, row.numbers)).phone_numbers
    items = [Item(number, "pending", None, None) for number in numbers]
    for settlement in row.settlements:
        _settle(parts, row, items, settlement)
    reply = JobReply(
        job_id=row.id,
        status=status_of(row),
        total_count=row.total_count,
        processed_count=row.completed_count + row.failed_count,
        failed_count=row.failed_count,
        created_at=format_time(row.created_at),
        finished_at=_format(row.finished_at),
        items=items,
    )
    return _ENCODER.encode(reply)


def _settle(parts: Container, row: JobRow, items: list[Item], settlement: Settlement) -> None:
    if settlement.errors is not None:
        for index, error in zip(settlement.indexes, settlement.errors, strict=True):
            items[index] = Item(items[index].phone_number, "failed", None, error)
    elif settlement.results is not None:
        results = _RESULTS.decode(_open(parts, row, settlement.results)).facts
        for index, facts in zip(settlement.indexes, results, strict=True):
            items[index] = Item(items[index].phone_number, "completed", facts, None)


def _open(parts: Container, row: JobRow, sealed: Sealed) -> bytes:
    clear = parts.vault.open(row.organization_id, row.id, sealed)
    if clear is None:
        raise NotFound
    return clear


def _format(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)
