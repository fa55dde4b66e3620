"""One bulk job and its money, as the tests of its workers ask for them and look at them."""

from uuid import UUID

from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet, wallet_id
from domain.lookups.bulk_job import BulkJob
from projections.audit.auditor import check_log
from tests.installation import PRICE_MICROS, Installation, Process

DEPOSIT_MICROS = 100_000_000


class Work:
    """A job of one funded organization, and workers in as many processes as a test needs."""

    def __init__(
        self, installation: Installation, wanted: list[str], price_micros: int = PRICE_MICROS
    ) -> None:
        self.installation = installation
        self.process = installation.process()
        self.organization_id = self.process.organization("100.00" if price_micros else "")
        self.price_micros = price_micros
        self.job_id = self.process.create_job(self.organization_id, wanted, price_micros)

    @property
    def job(self) -> BulkJob:
        return self.process.log.get(BulkJob, self.job_id)

    @property
    def spent_micros(self) -> int:
        wallet = self.process.log.find(Wallet, wallet_id(self.organization_id))
        return DEPOSIT_MICROS - wallet.balance_micros if wallet else 0

    def errors(self) -> dict[int, str]:
        """Return why items failed, by their index."""
        return {
            index: error
            for settled in self.job.settlements
            if isinstance(settled, BulkJob.ItemsFailed)
            for index, error in zip(settled.indexes, settled.errors, strict=True)
        }

    def check(self) -> None:
        """Expect that the money is exact and that no invariant is broken."""
        job = self.job
        kept = (job.created.total_count - len(job.failed)) * self.price_micros
        assert self.spent_micros == kept
        assert check_log(self.process.log).failures == []

    def starts(self, slice_index: int = 0) -> int:
        """Count the starts of a slice that the log holds."""
        started = self.process.events(BulkJob.SliceStarted)
        return [(each.originator_id, each.slice_index) for each in started].count(
            (self.job_id, slice_index)
        )


def suspend(process: Process, organization_id: UUID) -> None:
    def change(organization: Organization) -> None:
        organization.change_status("suspended", process.cause())
        organization.switch_lookup(process.cause(), enabled=False)

    process.accounts.change_organization(organization_id, change)
