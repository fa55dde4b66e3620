"""The newest month for which a fee fell due, for each organization."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

from domain.accounts.monthly_fee import MonthlyFee
from domain.cause import Cause
from tests.installation import Process

DUE_AT = datetime(2026, 2, 1, 0, 1, 0, 250_000, tzinfo=UTC)
CHARGED_AT = datetime(2026, 3, 4, 5, 6, 7, 8, tzinfo=UTC)
DUE, CHARGED = Cause(DUE_AT, "request-1"), Cause(CHARGED_AT, "request-2")


def due(organization_id: UUID, month: str) -> MonthlyFee:
    """A fee of two links, more than a column could hold, that nothing has happened to."""
    links = [uuid4(), uuid4()]
    return MonthlyFee.fall_due(
        organization_id, month, DUE, fee_micros=5 * 10**18, link_ids=links, currency="USD"
    )


def test_the_newest_month_counts_whether_it_was_charged_or_not(process: Process) -> None:
    paid, unpaid = uuid4(), uuid4()
    fee = due(paid, "2026-01")
    fee.record_charged(CHARGED)
    process.log.append(due(paid, "2025-12"), fee, due(unpaid, "2026-03"), due(unpaid, "2025-02"))
    assert process.ask(process.fee_book.newest) == {paid: "2026-01", unpaid: "2026-03"}
