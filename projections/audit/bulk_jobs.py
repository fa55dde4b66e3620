"""Checks that every item of a job ends once, and that a job keeps what its items cost."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.accounts.wallet import Reference
from domain.ids import derive_id
from domain.lookups.bulk_job import BulkJob
from projections.audit.bookings import Bookings, Reason


@dataclass(slots=True)
class _Job:
    """The state of a job."""

    created: BulkJob.Created
    lost: int = 0  # Items that have failed or were cancelled.
    refunded_micros: int = 0
    ended: set[int] = field(default_factory=set)


@dataclass
class BulkJobInvariants:
    """Every job that has not ended, item by item; a job that has ended is forgotten."""

    _bookings: Bookings
    _jobs: dict[UUID, _Job] = field(default_factory=dict)

    def check(self, position: int, event: BulkJob.Event) -> Iterator[str]:
        if isinstance(event, BulkJob.Created):
            yield from self._create(position, event)
            return
        if isinstance(event, BulkJob.SliceStarted):
            return
        job = self._jobs.get(event.originator_id)
        if job is None:
            yield f"job {event.originator_id} moves before it was created, or after its end"
        elif isinstance(event, BulkJob.Finished):
            if len(job.ended) != job.created.total_count:
                yield f"job {event.originator_id} finishes with open items"
            del self._jobs[event.originator_id]
        elif isinstance(event, BulkJob.ItemsCompleted):
            yield from _end_items(job, event)
            yield from _check_money(job)
        elif isinstance(event, BulkJob.ItemsFailed):
            yield from _end_items(job, event)
            yield from self._lose(position, job, len(event.indexes), event)
        elif isinstance(event, BulkJob.Cancelled):
            yield from _check_open(job, event)
            yield from self._lose(position, job, event.count, event)
            del self._jobs[event.originator_id]

    def _create(self, position: int, event: BulkJob.Created) -> Iterator[str]:
        self._jobs[event.originator_id] = _Job(event)
        price_micros = event.price.amount_micros if event.price is not None else 0
        if price_micros != event.total_count * event.item_price_micros:
            yield f"job {event.originator_id} costs another sum than its items"
        if event.price is not None:
            self._bookings.announce_charge(_reason(position, event), event.price)

    def _lose(
        self, position: int, job: _Job, count: int, event: BulkJob.ItemsFailed | BulkJob.Cancelled
    ) -> Iterator[str]:
        job.lost += count
        if event.refund is not None:
            job.refunded_micros += event.refund.amount_micros
            reason = _reason(position, event)
            self._bookings.announce_refund(reason, event.refund, job.created.price)
        yield from _check_money(job)


def _reason(position: int, event: BulkJob.Event) -> Reason:
    reference = Reference("job", str(event.originator_id))
    return Reason(position, event.organization_id, reference, "bulk_lookup")


def _end_items(job: _Job, event: BulkJob.ItemsCompleted | BulkJob.ItemsFailed) -> Iterator[str]:
    if job.ended.intersection(event.indexes) or len(set(event.indexes)) != len(event.indexes):
        yield f"job {event.originator_id} ends an item twice"
    if not all(0 <= index < job.created.total_count for index in event.indexes):
        yield f"job {event.originator_id} ends an item that it does not have"
    job.ended.update(event.indexes)


def _check_open(job: _Job, event: BulkJob.Cancelled) -> Iterator[str]:
    open_now = {*range(job.created.total_count)} - job.ended
    if not event.count == len(open_now) > 0:
        yield f"job {event.originator_id} cancels other items than its open ones"
    follows = derive_id("refund", event.originator_id, min(open_now, default=0))
    if event.refund is not None and event.refund.transaction_id != follows:
        yield f"job {event.originator_id} names a refund that is not that of its open items"


def _check_money(job: _Job) -> Iterator[str]:
    """Check that charge − refunds = (completed + pending) × price."""
    created = job.created
    charged = created.price.amount_micros if created.price is not None else 0
    kept = (created.total_count - job.lost) * created.item_price_micros
    if charged - job.refunded_micros != kept:
        yield f"job {created.originator_id} keeps another sum than its items are worth"
