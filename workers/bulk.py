"""The work of a bulk job: a slice is looked up once, then settled and refunded in one commit."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec

from domain.accounts.committer import Committer
from domain.cause import Cause, Clock
from domain.errors import NumberLookupUnavailable
from domain.log.log import Log
from domain.lookups.answers import LATER, NO_DATA, Answer, Answers, Outcome, asked_of
from domain.lookups.bulk_job import BulkJob, PersonalNumbers, PersonalResults, refunds_of
from domain.personal import Sealed, Vault
from domain.provider_errors import NotNow

UNAVAILABLE = NumberLookupUnavailable.message
EXHAUSTED = "The lookup could not be completed; it was given up after several attempts."
ERASED = "The number was erased before it was looked up."

logger = logging.getLogger(__name__)

Outcomes = Mapping[int, Answer | str]  # By item index: an answer, or the reason why there is none.


@dataclass(frozen=True)
class BulkLookup:
    """Works on slices of jobs; any message may come twice, late or never."""

    log: Log
    committer: Committer
    vault: Vault
    answers: Answers
    clock: Clock

    def work(self, job_id: UUID, slice_index: int) -> int:
        """End all open items of one slice; return the position of that, 0 if it had ended already.

        If the provider asks us to wait with some items, they stay open for a later start, and
        NotNow is raised after the others have ended. The last start of a slice ends them all.
        """
        job = self.log.find(BulkJob, job_id)
        if job is None:
            logger.error("job %s does not exist", job_id)
            return 0
        if not job.open_items(slice_index):
            return 0
        cause = Cause(self.clock(), job.created.request_id)
        started = self._start(job, slice_index, cause)
        if isinstance(started, int):
            return started
        count = len(started.open_items(slice_index))
        outcomes = self._look_up(started, slice_index)
        position = self._settle(started, slice_index, outcomes)
        if len(outcomes) < count:
            raise NotNow
        return position

    def _start(self, job: BulkJob, slice_index: int, cause: Cause) -> BulkJob | int:
        """Count the attempt; if nothing is open, or was just given up, return as `work` does."""

        def start(newest: BulkJob) -> BulkJob | int:
            still_open = newest.open_items(slice_index)
            if not still_open:
                return 0
            if newest.exhausted(slice_index):
                return self._settle(newest, slice_index, dict.fromkeys(still_open, EXHAUSTED))
            newest.start_slice(slice_index, cause)
            return newest

        return self.log.change(job, start)

    def _look_up(self, job: BulkJob, slice_index: int) -> Outcomes:
        indexes = job.open_items(slice_index)
        clear = self.vault.open(job.organization_id, job.id, job.created.personal)
        if clear is None:
            return dict.fromkeys(indexes, ERASED)
        numbers = msgspec.json.decode(clear, type=PersonalNumbers).phone_numbers
        wanted = [numbers[index] for index in indexes]
        answers = self.answers.many(job.organization_id, wanted)
        is_last = job.exhausted(slice_index)
        return {
            index: answer if isinstance(answer, Answer) else _why_not(answer)
            for index, answer in zip(indexes, answers, strict=True)
            if is_last or answer != LATER
        }

    def _settle(self, job: BulkJob, slice_index: int, outcomes: Outcomes) -> int:
        """Append these outcomes; after a conflict drop items that have ended, and look none up."""

        def settle(newest: BulkJob) -> int:
            still_open = newest.open_items(slice_index)
            mine = {index: outcomes[index] for index in still_open if index in outcomes}
            return self._commit(newest, slice_index, mine) if mine else 0

        return self.log.change(job, settle)

    def _commit(self, job: BulkJob, slice_index: int, outcomes: Outcomes) -> int:
        cause = Cause(self.clock(), job.created.request_id)
        answered = {i: each for i, each in outcomes.items() if isinstance(each, Answer)}
        failed = {i: each for i, each in outcomes.items() if isinstance(each, str)}
        if answered:
            answers = [*answered.values()]
            results, queried = self._seal(job, answers), asked_of(answers)
            job.complete_items(slice_index, [*answered], results, cause, queried)
        refund = None
        if failed:
            refund = job.fail_items(slice_index, [*failed], [*failed.values()], cause)
        job.finish_if_settled(cause)
        refunds = refunds_of(job, refund, len(failed), "lookup_unavailable")
        return self.committer.commit_entries(job.organization_id, refunds, cause, job)

    def _seal(self, job: BulkJob, answers: Sequence[Answer]) -> Sealed:
        more = [answer.details for answer in answers]
        results = PersonalResults([each.facts for each in answers], more if any(more) else None)
        clear = msgspec.json.encode(results)
        month = job.created.personal.month
        return self.vault.seal(job.organization_id, month, job.id, clear, exactly=True)


def _why_not(outcome: Outcome) -> str:
    return NO_DATA if outcome is False else UNAVAILABLE
