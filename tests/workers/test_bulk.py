"""A slice of a job is looked up, settled and refunded once, whatever its messages do."""

from datetime import timedelta
from uuid import uuid4

import pytest

from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet, wallet_id
from domain.cause import Cause
from domain.lookups.bulk_job import STARTS_MAX, BulkJob
from domain.months import month_of
from projections.audit.auditor import check_log
from tests.domain.asking import together
from tests.installation import PRICE_MICROS, CountingProvider, Installation, Process, numbers
from tests.support.erasing import erase_months
from workers.bulk import ERASED


class Work:
    """A job of one funded organization, and a worker."""

    def __init__(self, installation: Installation, count: int) -> None:
        self.provider = CountingProvider()
        self.process = installation.process(provider=self.provider)
        self.organization_id = self.process.organization("100.00")
        self.job_id = self.process.create_job(self.organization_id, numbers(count))

    @property
    def job(self) -> BulkJob:
        return self.process.log.get(BulkJob, self.job_id)

    def work(self, slice_index: int = 0) -> None:
        self.process.bulk_lookup.work(self.job_id, slice_index)

    def erase(self) -> int:
        next_month = month_of(self.process.clock() + timedelta(days=31))
        return erase_months(self.process.vault, next_month)

    def check(self) -> None:
        """Expect that the money is exact and that no invariant is broken."""
        kept = self.job.created.total_count - len(self.job.failed)
        wallet = self.process.log.get(Wallet, wallet_id(self.organization_id))
        assert wallet.balance_micros == 100_000_000 - kept * PRICE_MICROS
        assert check_log(self.process.log).failures == []


def test_what_no_job_has_is_no_work(installation: Installation) -> None:
    work = Work(installation, 3)
    head = work.process.log.head()
    for slice_index in (1, 99, -1):
        work.work(slice_index)
    work.process.bulk_lookup.work(uuid4(), 0)
    assert work.process.log.head() == head
    work.check()


def test_numbers_that_were_erased_fail_and_are_refunded(installation: Installation) -> None:
    work = Work(installation, 3)
    assert work.erase() == 1
    work.work()
    (failed,) = work.process.events(BulkJob.ItemsFailed)
    assert (failed.indexes, failed.errors) == ([0, 1, 2], [ERASED] * 3)
    assert work.provider.asked == []
    work.check()


def test_numbers_that_are_erased_while_they_are_looked_up_end_all_the_same(
    installation: Installation,
) -> None:
    work = Work(installation, 1)
    work.provider.meanwhile = work.erase
    for _ in range(STARTS_MAX + 1):
        if work.job.finished_at is None:
            try_to_work(work)
    assert work.job.finished_at is not None
    work.check()


def try_to_work(work: Work) -> None:
    """Take a message; one that raises comes again."""
    try:
        work.work()
    except ValueError:
        assert work.job.finished_at is None


def test_an_accepted_job_runs_on_after_a_suspension(installation: Installation) -> None:
    def suspend(organization: Organization, cause: Cause) -> None:
        organization.change_status("suspended", cause)
        organization.switch_lookup(cause, enabled=False)

    work = Work(installation, 2)
    work.process.change(work.organization_id, suspend)
    work.work()
    assert work.job.completed == {0, 1}
    work.check()


@pytest.mark.each_database
def test_twelve_who_cancel_at_once_beside_a_worker_give_back_once(
    installation: Installation,
) -> None:
    process = installation.process()
    organization_id = process.organization("100.00")
    job_id = process.create_job(organization_id, numbers(1_000))
    askers = [installation.process() for _ in range(3)]
    told = list[tuple[int, int]]()

    def ask(asker: Process) -> None:
        job = asker.bulk_jobs.load(organization_id, job_id)
        cancelled = asker.bulk_jobs.cancel(job, asker.cause())
        told.append((cancelled.cancelled_count, cancelled.version))

    worker = installation.process(provider=CountingProvider())
    calls = [lambda asker=asker: ask(asker) for asker in askers for _ in range(4)]
    together(lambda: worker.bulk_lookup.work(job_id, 0), *calls)
    job = process.log.get(BulkJob, job_id)
    assert len(told) == 12
    assert {count for count, _ in told} == {job.cancelled_count}
    refunds = process.events(Wallet.Refunded)
    assert [each.amount_micros for each in refunds] == [job.cancelled_count * PRICE_MICROS]
    process.projector.catch_up()
    assert process.audit().failures == []
