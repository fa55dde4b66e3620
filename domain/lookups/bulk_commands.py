"""The commands that accept a bulk job and cancel one.

A job is paid in the commit that creates it. A cancellation refunds the open items in its commit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec

from domain.accounts.committer import Committer
from domain.accounts.paid_price import price_of
from domain.cause import Cause
from domain.errors import KEY_ERASED, Conflict, JobFinished, NotFound, Refused, refuse_other
from domain.limiter import OpenItems
from domain.log.log import Log
from domain.lookups.bulk_job import BulkJob, PersonalNumbers, bulk_job_id, refunds_of
from domain.money import format_amount
from domain.months import month_of
from domain.personal import Vault

SLICE_ITEMS = 250  # About 10 ms of offline lookups, far more than a commit and a message cost.


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
