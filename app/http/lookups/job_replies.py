"""The replies about bulk jobs.

What is known of a number is passed on as it is stored, because a job may hold a thousand of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Annotated, Any, Final, cast
from uuid import UUID

import msgspec
from flask import Response
from msgspec.structs import asdict, astuple

from app.bootstrap.container import Container
from app.http.edge.input import parse_id
from app.http.edge.media import CSV, JSON, NDJSON, attachment, csv_reply, preferred
from app.http.edge.replies import Reply, example, mark_stale, reply_meta, wait_for
from app.http.edge.request import Given
from app.http.edge.schemas import example_of
from app.http.lookups.input import ITEM_STATUSES
from app.http.lookups.replies import Charge, NumberResult, PhoneNumber
from app.security.authorization import Caller
from domain.errors import NotFound, NumberLookupUnavailable
from domain.lookups.bulk_job import SLICE_ITEMS, BulkJob, PersonalNumbers
from domain.lookups.ports import Carrier, NumberFacts
from domain.money import format_amount
from domain.personal import Sealed
from projections.engine.shape import MORE_MAY_COME, Amount, Moment, Shape, means, one_of
from projections.models.jobs import STATUSES, JobCounts, JobRow, Settlement, row_of


class Results(msgspec.Struct):
    """`PersonalResults` whose facts are passed on as they are stored.

    Facts have one form in the store and in replies: unknown fields are left out of both.
    """

    facts: list[msgspec.Raw]


class JobCharge(Charge):
    """What a job cost."""

    refunded: Annotated[Amount, means("What has gone back of it so far.", example="0.005")]


class JobAccepted(msgspec.Struct):
    """What a new job is known by."""

    job_id: Annotated[UUID, means("The id to poll with.")]
    charge: Annotated[
        JobCharge | None, means("What it cost when it was accepted; null for a free one.")
    ]


class JobItem(msgspec.Struct, gc=False):
    """One number of a job; `result` or `error` is there when it has ended."""

    phone_number: PhoneNumber
    status: Annotated[
        str,
        means("How far it is; a failed or cancelled item has been refunded."),
        means(**one_of("JobItemStatus", ITEM_STATUSES, MORE_MAY_COME)),
    ]
    result: Annotated[NumberResult | None, means("There when the item is completed, else null.")]
    error: Annotated[str | None, means("Why the item failed, else null.")]


class JobSummary(Shape):
    """A bulk job without its items, which cannot change while all of this stays.

    The tag of a job is made of this. A release that shows items otherwise has to change this too.
    """

    job_id: Annotated[UUID, means("The job.")]
    status: Annotated[
        str,
        means(
            "`pending`: no item has ended; `processing`; `completed`, perhaps with failed items; "
            "`failed`: every item failed; `cancelled`: some were cancelled. The last three are "
            "final."
        ),
        means(example="completed", **one_of("JobStatus", STATUSES, MORE_MAY_COME)),
    ]
    total_count: Annotated[int, means("Numbers in the job.", example=2)]
    processed_count: Annotated[int, means("Items that have an answer or have failed.", example=2)]
    failed_count: Annotated[int, means("Items that have failed.")]
    cancelled_count: Annotated[int, means("Items that were cancelled.", example=0)]
    charge: Annotated[JobCharge | None, means("What it cost; null for a free job.")]
    created_at: Annotated[Moment, means("When it was accepted (UTC).")]
    finished_at: Annotated[Moment | None, means("When its last item ended, else null.")]


class Job(JobSummary):
    """A bulk job and its items in the order submitted."""

    items: Annotated[
        list[JobItem] | msgspec.UnsetType,
        means("In the order submitted; absent with `fields=summary`."),
    ] = msgspec.UNSET


_NUMBERS = msgspec.json.Decoder(PersonalNumbers)
_RESULTS = msgspec.json.Decoder(Results)


def load_job(caller: Caller, given: Given[Any], job_id: str) -> JobCounts:
    """Read a job of an organization without its items; NotFound once it has been erased.

    The log is read only if the read model, after a wait, still lacks the job. Without the wait, a
    later read of the slower read model would seem to take back what the log has shown.
    """
    parts, owner, wanted = given.parts, caller.organization_id, parse_id(job_id)
    row: JobCounts | None = parts.jobs.counts(parts.views, owner, wanted)
    if row is None:
        wait_for(parts, parts.jobs.name)
        row = parts.jobs.counts(parts.views, owner, wanted)
    if row is not None:
        mark_stale(parts, parts.jobs.name)
    else:
        job = parts.log.find(BulkJob, wanted)
        if job is None or job.organization_id != owner:
            raise NotFound
        row = row_of(job)
    if not parts.vault.has(owner, row.month, row.id):
        raise NotFound
    return row


def whole(parts: Container, job: JobCounts) -> JobRow:
    """Return the row of a found job with all that is known of its items."""
    if isinstance(job, JobRow):
        return job
    row = parts.jobs.get(parts.views, job.organization_id, job.id)
    if row is None:  # The read model was replaced by one that is behind.
        raise NotFound
    return row


def open_numbers(parts: Container, row: JobRow) -> list[str]:
    """Return the numbers of a job; NotFound once they are erased."""
    return _NUMBERS.decode(_open(parts, row, row.numbers)).phone_numbers


def encode_state(row: JobCounts) -> bytes:
    return msgspec.json.encode(show_summary(row))


def show_job(parts: Container, row: JobRow, numbers: list[str]) -> Job:
    """Return a job with its items; NotFound once its results are erased."""
    items = [item for block in items_of(parts, row, numbers) for item in block]
    return Job(**asdict(show_summary(row)), items=items)


def items_of(parts: Container, row: JobRow, numbers: list[str]) -> Iterator[list[JobItem]]:
    """Yield the items in order, block by block, so that their facts are never all in memory."""
    settled = defaultdict[int, list[Settlement]](list)
    for settlement in row.settlements:  # Each settles items of one slice, which is one block.
        for block in {index // SLICE_ITEMS for index in settlement.indexes}:
            settled[block].append(settlement)
    still_open = "pending" if row.cancelled_count == 0 else "cancelled"
    for block, start in enumerate(range(0, len(numbers), SLICE_ITEMS)):
        batch = numbers[start : start + SLICE_ITEMS]
        items = [JobItem(each, still_open, None, None) for each in batch]
        for settlement in settled.pop(block, ()):
            _settle(parts, row, settlement, items, start)
        yield items


def show_summary(row: JobCounts) -> JobSummary:
    return JobSummary.of(row, job_id=row.id, charge=charge_of(row, row.refunded_micros))


def charge_of(row: JobCounts, refunded_micros: int) -> JobCharge | None:
    if row.transaction_id is None or row.currency is None:
        return None
    amount = format_amount(row.total_count * row.item_price_micros)
    return JobCharge(row.transaction_id, amount, row.currency, format_amount(refunded_micros))


def _settle(
    parts: Container, row: JobRow, settlement: Settlement, items: list[JobItem], start: int
) -> None:
    """Set the outcomes of the items of a block, which begins at index `start`."""
    outcomes: list[tuple[str, Any, str | None]]
    if settlement.errors is not None:
        outcomes = [("failed", None, error) for error in settlement.errors]
    else:  # Facts have the form in which they are sent.
        assert settlement.results is not None
        found = _RESULTS.decode(_open(parts, row, settlement.results)).facts
        outcomes = [("completed", facts, None) for facts in found]
    for index, outcome in zip(settlement.indexes, outcomes, strict=True):
        if start <= index < start + len(items):
            items[index - start] = JobItem(items[index - start].phone_number, *outcome)


def _open(parts: Container, row: JobRow, sealed: Sealed) -> bytes:
    clear = parts.vault.open(row.organization_id, row.id, sealed)
    if clear is None:
        raise NotFound
    return clear


ITEMS: Final[Sequence[Any]] = (
    JobItem("+971508245915", "completed", example_of(NumberResult), None),
    JobItem("+15005550001", "failed", None, NumberLookupUnavailable.message),
)
JOB: Final = example("The job.", Job, items=ITEMS)
CANCELLED: Final = example(
    "The job, without its items.", JobSummary, status="cancelled", cancelled_count=1, failed_count=0
)


# The results as a file, sent block by block while they are opened.
TYPES: Final = {"json": JSON, "csv": CSV, "ndjson": NDJSON}
COLUMNS = (
    "phone_number",
    "status",
    "valid",
    "country_code",
    "national_format",
    "carrier_name",
    "carrier_type",
    "mcc",
    "mnc",
    "error",
)
EXAMPLES: Final = {
    CSV: f"{','.join(COLUMNS)}\r\n'+971508245915,completed,true,AE,050 824 5915,Etisalat,mobile,"
    "424,02,\r\n'+15005550001,failed,,,,,,,,The lookup service is unavailable.\r\n",
    NDJSON: '{"phone_number":"+14155552671","status":"pending","result":null,"error":null}\n',
}


RESULTS: Final = example(
    "The items of the job, in the order submitted.", ITEMS, "JobResultsReply", of=Sequence[JobItem]
)
_ENCODER = msgspec.json.Encoder()
_FACTS = msgspec.json.Decoder(NumberFacts)


def results_reply(parts: Container, row: JobRow, wanted: str, status: str | None) -> Response:
    """Reply with the items of a job, or with those of one status; NotFound once it is erased.

    `wanted` is a format of `TYPES`. A thread is held until the last block is sent, so its operation
    first holds a place of the container's `downloads`.
    """
    left = items_of(parts, row, open_numbers(parts, row))
    # The first block before the reply begins, so that most jobs, which have few, are whole or 404.
    blocks: Iterable[list[JobItem]] = chain([*islice(left, 1)], left)
    if status is not None:
        blocks = ([item for item in block if item.status == status] for block in blocks)
    name = f"job-{row.id}.{wanted}"
    if wanted == "csv":
        return csv_reply(COLUMNS, (_cells(item) for block in blocks for item in block), name)
    # The envelope now, because it says what of this request the context has.
    before, _, after = _ENCODER.encode(Reply(data=None, meta=reply_meta())).partition(b"null")
    is_whole = wanted == "json"
    sent = _enveloped(before, blocks, after) if is_whole else map(_ENCODER.encode_lines, blocks)
    return Response(sent, headers=attachment(name), content_type=TYPES[wanted])


def format_of(wanted: str | None) -> str:
    """Return the format that a request asks for, by its query or else by `Accept`."""
    if wanted:
        return wanted
    media = preferred(CSV, NDJSON)
    return next(name for name, its in TYPES.items() if its == media)


def _enveloped(before: bytes, blocks: Iterable[list[JobItem]], after: bytes) -> Iterator[bytes]:
    lead = before + b"["
    for block in blocks:
        if block:
            yield lead + _ENCODER.encode(block)[1:-1]
            lead = b","
    yield (b"" if lead == b"," else lead) + b"]" + after


def _cells(item: JobItem) -> Sequence[object]:
    if item.result is None:
        return (item.phone_number, item.status, *[None] * 7, item.error)
    known = _FACTS.decode(cast("msgspec.Raw", item.result))  # Facts come as they were stored.
    carrier = astuple(known.carrier or Carrier())
    number = (known.country_code, known.national_format)
    is_valid = "true" if known.valid else "false"
    return (item.phone_number, item.status, is_valid, *number, *carrier, item.error)
