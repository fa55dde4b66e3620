"""Monthly fees as read: what fell due in which month, and when it was charged."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

from domain.accounts.monthly_fee import MonthlyFee
from domain.cause import Cause
from projections.models.monthly_fees import FeeRow
from tests.installation import Process

DUE_AT = datetime(2026, 2, 1, 0, 1, 0, 250_000, tzinfo=UTC)
CHARGED_AT = datetime(2026, 3, 4, 5, 6, 7, 8, tzinfo=UTC)
DUE, CHARGED = Cause(DUE_AT, "request-1"), Cause(CHARGED_AT, "request-2")


def due(organization_id: UUID, month: str = "2026-02", fee_micros: int = 1_500_000) -> MonthlyFee:
    """A fee of two links that nothing has happened to."""
    links = [uuid4(), uuid4()]
    return MonthlyFee.fall_due(
        organization_id, month, DUE, fee_micros=fee_micros, link_ids=links, currency="USD"
    )


def fees(process: Process, organization_id: UUID) -> list[FeeRow]:
    return process.ask(process.fee_book.all_of, organization_id)


def test_the_newest_month_counts_whether_it_was_charged_or_not(process: Process) -> None:
    paid, unpaid, never = uuid4(), uuid4(), uuid4()
    fee = due(paid, "2026-01")
    fee.record_charged(CHARGED)
    process.log.append(due(paid, "2025-12"), fee, due(unpaid, "2026-03"), due(unpaid, "2025-02"))
    assert process.ask(process.fee_book.newest) == {paid: "2026-01", unpaid: "2026-03"}
    assert fees(process, never) == []


def test_a_sum_that_no_column_could_hold_stops_nothing(process: Process) -> None:
    organization_id = uuid4()
    process.log.append(due(organization_id, fee_micros=5 * 10**18))
    (row,) = fees(process, organization_id)
    assert row.amount_micros == 10**19
