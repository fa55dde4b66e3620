"""Two workers race for the slices of one paid job: every item ends once and money follows it."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from domain.bulk_job import BulkJob
from domain.cause import Cause
from domain.committer import Committer
from domain.errors import Conflict
from domain.money import format_amount, parse_amount
from domain.price import Repayment
from domain.wallet import Charge, Reference, Refund, Wallet, wallet_id
from tests.domain.build import ORGANIZATION, bulk_job, cause, open_wallet, sealed
from tests.domain.writers import everything, ledger, open_log

ITEM_MICROS = parse_amount("0.03")
WORKERS = (0, 1)


class BulkJobMachine(RuleBasedStateMachine):
    """Workers hold copies of the job that may be old, as workers of two processes do."""

    @initialize(total=st.integers(1, 7), slice_size=st.integers(1, 4))
    def accept(self, total: int, slice_size: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.log = open_log(Path(self._folder.name) / "log.sqlite")
        self.committer = Committer(self.log)
        open_wallet(self.log, self.committer, "1.00", ORGANIZATION)
        job = bulk_job(total, slice_size, format_amount(ITEM_MICROS))
        self.job_id, self.price = job.id, job.created.price
        assert self.price is not None
        paid = Charge(
            transaction_id=self.price.transaction_id,
            kind="bulk_lookup",
            amount_micros=self.price.amount_micros,
            currency=self.price.currency,
            reference=Reference("job", str(job.id)),
            description="Bulk number lookup",
        )
        self.committer.commit(
            wallet_id(ORGANIZATION), lambda wallet: wallet.charge(paid, cause()), job
        )
        self.copies = {worker: self.log.get(BulkJob, job.id) for worker in WORKERS}
        self.moment = 0

    def teardown(self) -> None:
        self.committer.close()
        self.log.close()
        self._folder.cleanup()

    def cause_of(self, worker: int) -> Cause:
        """Workers never have a moment in common, so that no two of their events are equal."""
        self.moment += 1
        return cause(self.moment, f"worker-{worker}")

    @rule(worker=st.sampled_from(WORKERS))
    def load(self, worker: int) -> None:
        self.copies[worker] = self.log.get(BulkJob, self.job_id)

    @rule(worker=st.sampled_from(WORKERS), data=st.data())
    def start(self, worker: int, data: st.DataObject) -> None:
        job = self.copies[worker]
        startable = [each for each in job.open_slices() if not job.exhausted(each)]
        if startable:
            job.start_slice(data.draw(st.sampled_from(startable)), self.cause_of(worker))
            self._save(worker)

    @rule(worker=st.sampled_from(WORKERS), data=st.data())
    def settle(self, worker: int, data: st.DataObject) -> None:
        """End some items of a slice, in any order, as completed or failed, in one commit."""
        job = self.copies[worker]
        if not job.open_slices():
            return
        slice_index = data.draw(st.sampled_from(job.open_slices()))
        items = data.draw(st.permutations(job.open_items(slice_index)))
        items = items[: data.draw(st.integers(1, len(items)))]
        completed = items[: data.draw(st.integers(0, len(items)))]
        failed = items[len(completed) :]
        if completed:
            job.complete_items(slice_index, completed, sealed(), self.cause_of(worker))
        refund = None
        if failed:
            refund = job.fail_items(
                slice_index, failed, ["no answer"] * len(failed), self.cause_of(worker)
            )
        job.finish_if_settled(self.cause_of(worker))
        self._save(worker, refund)

    def _save(self, worker: int, refund: Repayment | None = None) -> None:
        job = self.copies[worker]
        old = job.version - len(job.pending_events) < self.log.get(BulkJob, job.id).version
        try:
            if refund is None:
                self.log.append(job)
            else:
                self._commit_with(job, refund)
        except Conflict:
            assert old
            self.copies[worker] = self.log.get(BulkJob, self.job_id)
        else:
            assert not old

    def _commit_with(self, job: BulkJob, refund: Repayment) -> None:
        assert self.price is not None
        wanted = Refund(
            transaction_id=refund.transaction_id,
            charge_id=self.price.transaction_id,
            amount_micros=refund.amount_micros,
            currency=self.price.currency,
            reference=Reference("job", str(job.id)),
            description="Failed items",
        )
        self.committer.commit(
            wallet_id(ORGANIZATION), lambda wallet: wallet.refund(wanted, cause()), job
        )

    @invariant()
    def the_wallet_holds_what_the_job_has_not_kept(self) -> None:
        job = self.log.get(BulkJob, self.job_id)
        kept = (job.created.total_count - len(job.failed)) * ITEM_MICROS
        wallet = self.log.get(Wallet, wallet_id(ORGANIZATION))
        assert wallet.balance_micros == 1_000_000 - kept
        assert len(ledger(self.log)) == wallet.sequence

    @invariant()
    def at_every_position_each_item_has_one_end_and_its_price(self) -> None:
        assert self.price is not None
        ended: set[int] = set()
        completed = 0
        left_micros, finished = self.price.amount_micros, False
        for recorded in everything(self.log):
            event = recorded.event
            if isinstance(event, BulkJob.ItemsCompleted | BulkJob.ItemsFailed):
                assert not finished
                assert not ended.intersection(event.indexes)
                ended.update(event.indexes)
            if isinstance(event, BulkJob.ItemsCompleted):
                completed += len(event.indexes)
            if isinstance(event, BulkJob.ItemsFailed):
                assert event.refund is not None
                left_micros -= event.refund.amount_micros
            finished = finished or isinstance(event, BulkJob.Finished)
            pending = self._total - len(ended)
            assert left_micros == (completed + pending) * ITEM_MICROS
        assert finished == (len(ended) == self._total)

    @invariant()
    def attempts_are_counted_without_a_gap(self) -> None:
        attempts: dict[int, int] = {}
        for recorded in everything(self.log):
            if isinstance(recorded.event, BulkJob.SliceStarted):
                slice_index = recorded.event.slice_index
                attempts[slice_index] = attempts.get(slice_index, 0) + 1
                assert recorded.event.attempt == attempts[slice_index]

    @property
    def _total(self) -> int:
        assert self.price is not None
        return self.price.amount_micros // ITEM_MICROS


TestBulkJob = BulkJobMachine.TestCase
TestBulkJob.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
