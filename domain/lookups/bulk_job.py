"""A bulk job: numbers looked up in slices, paid in advance; and the commands on it.

A job is paid in the commit that creates it. What fails, or is cancelled before it has an outcome,
is refunded in the commit that says so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

import msgspec

from domain.accounts.committer import Committer
from domain.accounts.paid_price import PaidPrice, RefundReason, Repaying, Repayment, price_of
from domain.accounts.refund_by_hand import Refundable, RefundByHand
from domain.accounts.wallet import Refund
from domain.cause import Cause
from domain.cost import Cost
from domain.errors import KEY_ERASED, Conflict, JobFinished, NotFound, Refused, refuse_other
from domain.ids import derive_id
from domain.limiter import OpenItems
from domain.log.aggregate import NOTHING, ByOperator, Root, fact, sets
from domain.log.aggregate import Created as FirstEvent
from domain.log.log import Log
from domain.lookups.ports import Details, NumberFacts
from domain.money import format_amount
from domain.months import month_of
from domain.personal import Sealed, Vault

# Starts of a slice in a row that end no item; one that has killed five workers would kill a sixth.
STARTS_MAX = 5
SLICE_ITEMS = 250  # About 10 ms of offline lookups, far more than a commit and a message cost.


class PersonalNumbers(msgspec.Struct, frozen=True):
    """The numbers of a job in the order submitted; sealed inside `Created`."""

    phone_numbers: list[str]


class PersonalResults(msgspec.Struct, frozen=True, omit_defaults=True):
    """The facts of settled items, in the order of the event's `indexes`.

    `told` has the same order; None if no provider has told anything more.
    """

    facts: list[NumberFacts]
    told: list[Details | None] | None = None


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many items a provider has answered, and what it charges for all, if known."""

    provider: str
    count: int
    cost: Cost | None = None


class BulkJob(Refundable):
    """A bulk job. Items are known by their index; personal data about them stays sealed."""

    TOPIC = "bulk_job"
    KIND = "job"

    class Event(Root.Event):
        organization_id: UUID

    class Created(Event, FirstEvent):
        """`price` is that of the whole job; None when lookups were free at that time."""

        TOPIC = "bulk_job.created"

        total_count: int
        slice_size: int
        item_price_micros: int
        price: PaidPrice | None
        personal: Sealed

        def apply(self, aggregate: "BulkJob") -> None:
            aggregate.created = self
            aggregate.organization_id = self.organization_id
            aggregate.attempts = {}
            aggregate.completed = set()
            aggregate.failed = set()
            aggregate.settlements = []

    class SliceStarted(Event):
        """Counts the attempt before any work is done, so that killed workers count too."""

        TOPIC = "bulk_job.slice_started"

        slice_index: int
        attempt: int

        def apply(self, aggregate: "BulkJob") -> None:
            aggregate.attempts[self.slice_index] = self.attempt

    class ItemsCompleted(Event):
        """Items that `asked` leaves out were answered from the cache. Older events have None."""

        TOPIC = "bulk_job.items_completed"

        slice_index: int
        indexes: list[int]
        personal: Sealed
        asked: list[Asked] | None = field(default=None, kw_only=True)

        def apply(self, aggregate: "BulkJob") -> None:
            aggregate.completed.update(self.indexes)
            aggregate.attempts.pop(self.slice_index, None)
            aggregate.settlements.append(self)

    class ItemsFailed(Event, Repaying):
        """`errors` are messages without personal data, in the order of `indexes`."""

        TOPIC = "bulk_job.items_failed"
        WHY = "lookup_unavailable"

        slice_index: int
        indexes: list[int]
        errors: list[str]
        refund: Repayment | None

        def apply(self, aggregate: "BulkJob") -> None:
            aggregate.failed.update(self.indexes)
            aggregate.attempts.pop(self.slice_index, None)
            aggregate.settlements.append(self)

    class Finished(Event):
        TOPIC = "bulk_job.finished"
        SETS = sets(finished_at=fact("timestamp"))

    class Cancelled(Event, Repaying, ByOperator):
        """The job has ended; its `count` items without an outcome were cancelled."""

        TOPIC = "bulk_job.cancelled"
        WHY = "cancelled"
        SETS = sets(cancelled_count=fact("count"), finished_at=fact("timestamp"))

        count: int
        refund: Repayment | None

    class RefundedByHand(RefundByHand):
        TOPIC = "bulk_job.refunded_by_hand"

    STAGES: ClassVar = {
        "finished_at": dict.fromkeys(
            (SliceStarted, ItemsCompleted, ItemsFailed, Finished, Cancelled), NOTHING
        )
    }

    created: Created
    attempts: dict[int, int]  # Starts of a slice since an item of it last ended.
    completed: set[int]
    failed: set[int]
    settlements: "list[BulkJob.ItemsCompleted | BulkJob.ItemsFailed]"
    cancelled_count: int = 0
    finished_at: datetime | None = None

    @classmethod
    def create(cls, stream_id: UUID, cause: Cause, **facts: Any) -> Self:
        """Accept the job; saved together with the charge for all of it."""
        made = cls.begin(cls.Created, cause, stream_id, **facts)
        first = made.created
        assert first.total_count > 0, first.total_count
        assert first.slice_size > 0, first.slice_size
        paid_micros = first.price.amount_micros if first.price is not None else 0
        assert paid_micros == first.total_count * first.item_price_micros, paid_micros
        return made

    def items_of(self, slice_index: int) -> range:
        """Return the indexes of one slice; empty if there is no such slice."""
        if slice_index < 0:
            return range(0)
        size = self.created.slice_size
        start = slice_index * size
        return range(start, min(start + size, self.created.total_count))

    def open_items(self, slice_index: int) -> list[int]:
        """Return the indexes of one slice that have not ended yet."""
        if self.finished_at is not None:
            return []
        items = self.items_of(slice_index)
        return [i for i in items if i not in self.completed and i not in self.failed]

    def exhausted(self, slice_index: int) -> bool:
        return self.attempts.get(slice_index, 0) >= STARTS_MAX

    def start_slice(self, slice_index: int, cause: Cause) -> None:
        """Count one more attempt at a slice that has open items and attempts left."""
        assert self.open_items(slice_index), slice_index
        assert not self.exhausted(slice_index), slice_index
        attempt = self.attempts.get(slice_index, 0) + 1
        self.record(self.SliceStarted, cause, slice_index=slice_index, attempt=attempt)

    def complete_items(
        self,
        slice_index: int,
        indexes: Sequence[int],
        personal: Sealed,
        cause: Cause,
        asked: Sequence[Asked] | None = None,
    ) -> None:
        self._assert_open(indexes)
        self.record(
            self.ItemsCompleted,
            cause,
            slice_index=slice_index,
            indexes=list(indexes),
            personal=personal,
            asked=None if asked is None else list(asked),
        )

    def fail_items(
        self, slice_index: int, indexes: Sequence[int], errors: Sequence[str], cause: Cause
    ) -> Repayment | None:
        """End open items without an answer; return what must be refunded for them."""
        self._assert_open(indexes)
        assert len(errors) == len(indexes), indexes
        refund = self._refund_of(indexes)
        self.record(
            self.ItemsFailed,
            cause,
            slice_index=slice_index,
            indexes=list(indexes),
            errors=list(errors),
            refund=refund,
        )
        return refund

    def finish_if_settled(self, cause: Cause) -> None:
        """End the job in the commit of its last item."""
        settled = len(self.completed) + len(self.failed)
        if settled == self.created.total_count and self.finished_at is None:
            self.record(self.Finished, cause)

    def cancel(self, cause: Cause) -> Repayment | None:
        """End a job that has not ended, with all its open items; return the refund for them."""
        settled = self.completed | self.failed
        still_open = [i for i in range(self.created.total_count) if i not in settled]
        assert still_open, "a job with an open item has not ended"
        refund = self._refund_of(still_open)
        self.record(self.Cancelled, cause, count=len(still_open), refund=refund)
        return refund

    def paid(self) -> Iterable[tuple[PaidPrice, int]]:
        back_micros = (len(self.failed) + self.cancelled_count) * self.created.item_price_micros
        return [(self.created.price, back_micros)] if self.created.price is not None else []

    def still_open(self) -> str | None:
        return "the job has not ended" if self.finished_at is None else None

    def _refund_of(self, indexes: Sequence[int]) -> Repayment | None:
        if self.created.price is None:
            return None
        return Repayment(
            amount_micros=len(indexes) * self.created.item_price_micros,
            transaction_id=derive_id("refund", self.id, min(indexes)),
        )

    def _assert_open(self, indexes: Sequence[int]) -> None:
        assert indexes, "nothing to end"
        assert len(set(indexes)) == len(indexes), "an item twice"
        assert not (self.completed | self.failed).intersection(indexes), "an item ends once"
        assert all(0 <= index < self.created.total_count for index in indexes), "no such item"


def bulk_job_id(organization_id: UUID, key: str) -> UUID:
    """Return the stream of an idempotent job; the outcome is its 202, so one attempt is enough."""
    return derive_id("bulk_job", organization_id, key, 1)


DESCRIPTIONS: Mapping[RefundReason, str] = {
    "lookup_unavailable": "Refund of failed bulk lookup items",
    "cancelled": "Refund of cancelled bulk lookup items",
}


def refunds_of(
    job: BulkJob, refund: Repayment | None, count: int, reason: RefundReason
) -> list[Refund]:
    """Return the wallet's entry for the refund of an event; none for a free job."""
    return job.credit(job.created.price, refund, reason, DESCRIPTIONS[reason], {"count": count})


def slice_count(created: BulkJob.Created) -> int:
    """Return how many slices a job has; the last one may be shorter."""
    return -(-created.total_count // created.slice_size)


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """Who asks for which numbers, and the price of each; `key` is the Idempotency-Key, if any."""

    organization_id: UUID
    phone_numbers: Sequence[str]
    price_micros: int
    currency: str
    key: str | None


@dataclass(frozen=True)
class BulkJobs:
    """Accepts jobs, and cancels them."""

    log: Log
    committer: Committer
    vault: Vault
    open_items: OpenItems
    new_id: Callable[[], UUID]

    def accept(self, request: BulkRequest, cause: Cause) -> tuple[BulkJob, bool]:
        """Accept a job; return it and whether an earlier request with the key had created it.

        Raises RateLimited beyond the limit of open items, the refusals of the wallet, and
        IdempotencyKeyReused for other numbers.
        """
        if request.key is None:
            return self._create(request, self.new_id(), cause), False
        job_id = bulk_job_id(request.organization_id, request.key)
        if (made := self._load_created(request, job_id)) is not None:
            return made, True
        try:
            return self._create(request, job_id, cause), False
        # A twin with our key may have been first, and taken the money or the room.
        except (Conflict, Refused):
            made = self._load_created(request, job_id)
            if made is None:
                raise
            return made, True

    def _load_created(self, request: BulkRequest, job_id: UUID) -> BulkJob | None:
        job = self.log.find(BulkJob, job_id)
        if job is None:
            return None
        clear = self.vault.open(job.organization_id, job.id, job.created.personal)
        if clear is None:
            raise NotFound(KEY_ERASED)
        numbers = msgspec.json.decode(clear, type=PersonalNumbers).phone_numbers
        refuse_other(phone_numbers=numbers != [*request.phone_numbers])
        return job

    def _create(self, request: BulkRequest, job_id: UUID, cause: Cause) -> BulkJob:
        amount_micros = request.price_micros * len(request.phone_numbers)
        price = price_of(job_id, amount_micros, request.currency)
        clear = msgspec.json.encode(PersonalNumbers(list(request.phone_numbers)))
        month = month_of(cause.at)
        job = BulkJob.create(
            job_id,
            cause,
            organization_id=request.organization_id,
            total_count=len(request.phone_numbers),
            slice_size=SLICE_ITEMS,
            item_price_micros=request.price_micros,
            price=price,
            personal=self.vault.seal(request.organization_id, month, job_id, clear),
        )
        with self.open_items.accept(request.organization_id, job.created.total_count) as accepting:
            each = {"price_per_lookup": format_amount(request.price_micros)}
            metadata = {"count": len(request.phone_numbers), **each}
            charges = job.debit(price, "Bulk number lookup", metadata)
            accepting.position = self.committer.commit_entries(
                request.organization_id, charges, cause, job
            )
        return job

    def load(self, organization_id: UUID, job_id: UUID) -> BulkJob:
        """Return a job of an organization; raises NotFound, also once it has been erased."""
        job = self.log.find(BulkJob, job_id)
        if job is None or job.organization_id != organization_id:
            raise NotFound
        if self.vault.open(organization_id, job.id, job.created.personal) is None:
            raise NotFound
        return job

    def cancel(self, job: BulkJob, cause: Cause) -> BulkJob:
        """End a job at once, with a refund for each open item, and return it.

        Items that a worker commits first keep their outcome; a worker that comes later finds no
        open item and drops its answers. A cancelled job is returned as it is. Raises JobFinished
        for a job that ended otherwise.
        """

        def cancel(newest: BulkJob) -> None:
            if newest.cancelled_count:
                return
            if newest.finished_at is not None:
                raise JobFinished
            refund = newest.cancel(cause)
            refunds = refunds_of(newest, refund, newest.cancelled_count, "cancelled")
            self.committer.commit_entries(newest.organization_id, refunds, cause, newest)

        return self.log.update(job, cancel)
