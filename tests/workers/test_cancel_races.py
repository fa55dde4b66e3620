"""A job is cancelled while workers settle it, and any of them dies at any place of a commit."""

from domain.accounts.wallet import Wallet
from domain.lookups.bulk_job import BulkJob
from tests.domain.asking import together
from tests.installation import PRICE_MICROS, CountingProvider, Installation, Process, numbers


def test_twelve_who_cancel_at_once_beside_a_worker_give_back_once(
    installation: Installation,
) -> None:
    process = installation.process()
    organization_id = process.organization("100.00")
    job_id = process.create_job(organization_id, numbers(1_000))
    askers = [installation.process() for _ in range(3)]
    told = list[tuple[int, int]]()

    def ask(asker: Process) -> None:
        job = asker.bulk_cancel.load(organization_id, job_id)
        cancelled = asker.bulk_cancel.run(job, asker.cause())
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
