"""The work of a bulk job: a slice is looked up once, then settled and refunded in one commit."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec

from domain.accounts.committer import Committer
from domain.accounts.price import Repayment
from domain.accounts.wallet import Reference, Refund, wallet_id
from domain.cause import Cause, Clock
from domain.errors import Conflict, NumberLookupUnavailable, ServiceUnavailable
from domain.log.log import Log
from domain.lookups.answers import Answer, Answers
from domain.lookups.bulk_job import BulkJob, PersonalNumbers, PersonalResults
from domain.personal import Sealed, Vault

CONFLICTS_MAX = 50  # Other slices of the job commit too; each lost race means one of them won.
UNAVAILABLE = NumberLookupUnavailable.message
EXHAUSTED = "The lookup could not be completed; it was given up after several attempts."
ERASED = "The number was erased before it was looked up."

logger = logging.getLogger(__name__)

Outcomes = Mapping[int, Answer | str]  # By item index: an answer, or why there is none.


@dataclass(frozen=True)
class BulkLookup:
    """Works on slices of jobs; any message may come twice, late or never."""

    log: Log
    committer: Committer
    vault: Vault
    answers: Answers
    clock: Clock

    def work(self, job_id: UUID, slice_index: int) -> bool:
        """End all items of one slice that are open; one that has ended is left alone: False."""
        job = self.log.find(BulkJob, job_id)
        if job is None:
            logger.error("job %s does not exist", job_id)
            return False
        if not job.open_items(slice_index):
            return False
        cause = Cause(self.clock(), job.created.request_id)
        started = self._start(job, slice_index, cause)
        if started is not None:
            self._settle(started, slice_index, self._look_up(started, slice_index))
        return True

    def _start(self, job: BulkJob, slice_index: int, cause: Cause) -> BulkJob | None:
        """Count the attempt; None when nothing is open, or was just given up."""
        for _ in range(CONFLICTS_MAX):
            if not job.open_items(slice_index):
                return None
            if job.exhausted(slice_index):
                self._settle(
                    job, slice_index, dict.fromkeys(job.open_items(slice_index), EXHAUSTED)
                )
                return None
            job.start_slice(slice_index, cause)
            try:
                self.log.append(job)
            except Conflict:
                job = self.log.get(BulkJob, job.id)
            else:
                return job
        raise ServiceUnavailable

    def _look_up(self, job: BulkJob, slice_index: int) -> Outcomes:
        indexes = job.open_items(slice_index)
        clear = self.vault.open(job.organization_id, job.id, job.created.personal)
        if clear is None:
            return dict.fromkeys(indexes, ERASED)
        numbers = msgspec.json.decode(clear, type=PersonalNumbers).phone_numbers
        asked = [numbers[index] for index in indexes]
        answers = self.answers.many(job.organization_id, asked)
        return {
            index: answer if answer is not None else UNAVAILABLE
            for index, answer in zip(indexes, answers, strict=True)
        }

    def _settle(self, job: BulkJob, slice_index: int, outcomes: Outcomes) -> None:
        """Append the outcomes that we hold; on conflict drop what has ended, never ask again."""
        for _ in range(CONFLICTS_MAX):
            still_open = job.open_items(slice_index)
            mine = {index: outcomes[index] for index in still_open if index in outcomes}
            if not mine:
                return
            try:
                self._commit(job, slice_index, mine)
            except Conflict:
                job = self.log.get(BulkJob, job.id)
            else:
                return
        raise ServiceUnavailable

    def _commit(self, job: BulkJob, slice_index: int, outcomes: Outcomes) -> None:
        cause = Cause(self.clock(), job.created.request_id)
        answered = {i: each for i, each in outcomes.items() if isinstance(each, Answer)}
        failed = {i: each for i, each in outcomes.items() if isinstance(each, str)}
        if answered:
            results = self._seal(job, [*answered.values()])
            job.complete_items(slice_index, [*answered], results, cause)
        refund = None
        if failed:
            refund = job.fail_items(slice_index, [*failed], [*failed.values()], cause)
        job.finish_if_settled(cause)
        if refund is None:
            self.log.append(job)
            return
        back = _refund_of(job, refund, len(failed))
        wallet = wallet_id(job.organization_id)
        self.committer.commit(wallet, lambda held: held.refund(back, cause), job)

    def _seal(self, job: BulkJob, answers: Sequence[Answer]) -> Sealed:
        clear = msgspec.json.encode(PersonalResults([answer.facts for answer in answers]))
        month = job.created.personal.month
        return self.vault.seal(job.organization_id, month, job.id, clear)


def _refund_of(job: BulkJob, refund: Repayment, count: int) -> Refund:
    assert job.created.price is not None
    return Refund(
        transaction_id=refund.transaction_id,
        charge_id=job.created.price.transaction_id,
        amount_micros=refund.amount_micros,
        currency=job.created.price.currency,
        reference=Reference("job", str(job.id)),
        description="Refund of failed bulk lookup items",
        metadata={"count": count},
    )
