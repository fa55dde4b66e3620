"""The replies about bulk jobs, made without a step for each field of an item; with an example."""

from typing import Annotated, Final, cast
from uuid import UUID

import msgspec
from msgspec.structs import asdict

from app.bootstrap.container import Container
from app.http.edge.age import note_age, wait_for
from app.http.edge.compression import Kept
from app.http.edge.replies import (
    JOB_ID,
    META,
    MORE_MAY_COME,
    Moment,
    Reply,
    format_time,
    means,
    one_of,
    time_or_null,
)
from app.http.lookups.ended_jobs import EndedJobs, Shown
from app.http.lookups.replies import RESULT, NumberResult, PhoneNumber
from domain.errors import NotFound, NumberLookupUnavailable
from domain.lookups.bulk_job import BulkJob, PersonalNumbers
from domain.personal import Sealed
from projections.models.jobs import STATUSES, JobCounts, JobRow, Settlement, row_of


class Results(msgspec.Struct):
    """`PersonalResults` whose facts are passed on as they are stored.

    Facts have one form in the store and in replies: unknown fields are left out of both.
    """

    facts: list[msgspec.Raw]


class JobAccepted(msgspec.Struct):
    """What a new job is known by."""

    job_id: Annotated[UUID, means("The id to poll with.")]


class JobItem(msgspec.Struct, gc=False):
    """One number of a job; `result` or `error` is there when it has ended."""

    phone_number: PhoneNumber
    status: Annotated[
        str,
        means(
            "How far it is; a failed item has been refunded.",
            **one_of("JobItemStatus", ["pending", "completed", "failed"], MORE_MAY_COME),
        ),
    ]
    result: Annotated[NumberResult | None, means("There when the item is completed, else null.")]
    error: Annotated[str | None, means("Why the item failed, else null.")]


class JobState(msgspec.Struct):
    """The `data` of a job read but its items, which cannot change while all of this stays.

    Its tag is made of this. A release that shows items otherwise has to change this as well.
    """

    job_id: Annotated[UUID, means("The job.")]
    status: Annotated[
        str,
        means(
            "`pending`: no item has ended; `processing`; `completed`, perhaps with failed items; "
            "`failed`: every item failed. The last two are final.",
            **one_of("JobStatus", STATUSES, MORE_MAY_COME),
        ),
    ]
    total_count: Annotated[int, means("Numbers in the job.")]
    processed_count: Annotated[int, means("Items that have ended.")]
    failed_count: Annotated[int, means("Items that have failed.")]
    created_at: Annotated[Moment, means("When it was accepted (UTC).")]
    finished_at: Annotated[Moment | None, means("When its last item ended, else null.")]


class Job(JobState):
    """A bulk job and its items in the order submitted."""

    items: Annotated[list[JobItem], means("In the order submitted.")]


class JobAcceptedReply(Reply[JobAccepted]):
    """The job is accepted, and paid."""


class JobReply(Reply[Job]):
    """The job."""


_ENCODER = msgspec.json.Encoder()
_NUMBERS = msgspec.json.Decoder(PersonalNumbers)
_RESULTS = msgspec.json.Decoder(Results)


def find_job(parts: Container, organization_id: UUID, job_id: UUID) -> JobRow:
    """Read a job of an organization; from the log if the read model does not have it yet.

    The read model is waited for first: if it is behind, a later read of it would seem to take back
    what the log has shown.
    """
    row = _stored_job(parts, organization_id, job_id)
    if row is None:
        wait_for(parts, parts.jobs.name)
        row = _stored_job(parts, organization_id, job_id)
    if row is not None:
        note_age(parts, parts.jobs.name)
        return row
    job = parts.log.find(BulkJob, job_id)
    if job is None or job.organization_id != organization_id:
        raise NotFound
    return row_of(job)


def _stored_job(parts: Container, organization_id: UUID, job_id: UUID) -> JobRow | None:
    return parts.jobs.get(parts.views, organization_id, job_id)


def find_ended(
    parts: Container, ended: EndedJobs, organization_id: UUID, job_id: UUID
) -> Shown | None:
    """Return the kept reply of an ended job, if it may be sent now.

    The keys of its personal data are asked for each time, as if they were used again.
    """
    shown = ended.find(organization_id, job_id)
    if shown is None:
        return None
    counts = parts.jobs.counts(parts.views, organization_id, job_id)
    is_same = counts is not None and encode_state(counts) == shown.state
    if not is_same or not all(parts.vault.holds(organization_id, each) for each in shown.months):
        ended.drop(organization_id, job_id)
        return None
    note_age(parts, parts.jobs.name)
    return shown


def open_numbers(parts: Container, row: JobRow) -> list[str]:
    """Return the numbers of a job; NotFound once they are erased."""
    return _NUMBERS.decode(_open(parts, row, row.numbers)).phone_numbers


def encode_state(row: JobCounts) -> bytes:
    """Return the JSON of a job without its items."""
    return _ENCODER.encode(_state_of(row))


def show_job(parts: Container, ended: EndedJobs, row: JobRow, numbers: list[str]) -> Job | Kept:
    """Return the reply of a job; NotFound once its results are erased.

    The reply of an ended job is kept.
    """
    reply = _show(parts, row, numbers)
    if row.finished_at is None:
        return reply
    sealed = (row.numbers, *(each.results for each in row.settlements))
    months = frozenset(each.month for each in sealed if each is not None)
    shown = Shown(encode_state(row), Kept(_ENCODER.encode(reply)), months)
    ended.keep(row.organization_id, row.id, shown)
    return shown.data


def _show(parts: Container, row: JobRow, numbers: list[str]) -> Job:
    ended: list[JobItem | None] = [None] * len(numbers)
    for settlement in row.settlements:
        _settle(parts, row, numbers, settlement, ended)
    items = [
        item or JobItem(number, "pending", None, None)
        for number, item in zip(numbers, ended, strict=True)
    ]
    return Job(**asdict(_state_of(row)), items=items)


def _state_of(row: JobCounts) -> JobState:
    return JobState(
        job_id=row.id,
        status=row.status,
        total_count=row.total_count,
        processed_count=row.completed_count + row.failed_count,
        failed_count=row.failed_count,
        created_at=format_time(row.created_at),
        finished_at=time_or_null(row.finished_at),
    )


def _settle(
    parts: Container,
    row: JobRow,
    numbers: list[str],
    settlement: Settlement,
    ended: list[JobItem | None],
) -> None:
    if settlement.errors is not None:
        for index, error in zip(settlement.indexes, settlement.errors, strict=True):
            ended[index] = JobItem(numbers[index], "failed", None, error)
    elif settlement.results is not None:
        facts_of = _RESULTS.decode(_open(parts, row, settlement.results)).facts
        results = cast("list[NumberResult]", facts_of)  # They have the form in which they are sent.
        for index, facts in zip(settlement.indexes, results, strict=True):
            ended[index] = JobItem(numbers[index], "completed", facts, None)


def _open(parts: Container, row: JobRow, sealed: Sealed) -> bytes:
    clear = parts.vault.open(row.organization_id, row.id, sealed)
    if clear is None:
        raise NotFound
    return clear


JOB_ACCEPTED: Final = JobAcceptedReply(data=JobAccepted(JOB_ID), meta=META)
JOB: Final = JobReply(
    data=Job(
        job_id=JOB_ID,
        status="processing",
        total_count=3,
        processed_count=2,
        failed_count=1,
        created_at="2026-11-21T03:04:05.100Z",
        finished_at=None,
        items=[
            JobItem("+971508245915", "completed", RESULT, None),
            JobItem("+15005550001", "failed", None, NumberLookupUnavailable.message),
            JobItem("+14155552671", "pending", None, None),
        ],
    ),
    meta=META,
)
