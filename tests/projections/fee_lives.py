"""Lives of monthly fees: due for a month, and charged then or later."""

from collections.abc import Sequence
from uuid import UUID

from domain.monthly_fee import MonthlyFee
from domain.wallet import wallet_id
from tests.installation import Process
from tests.projections.link_entries import charge_of


def owe(process: Process, organization_id: UUID, month: str, links: Sequence[UUID]) -> MonthlyFee:
    """Let the fee of a month fall due."""
    fee = MonthlyFee.fall_due(
        organization_id, month, process.cause(), fee_micros=10_000, link_ids=links, currency="USD"
    )
    process.log.append(fee)
    return fee


def charge_fee(process: Process, fee: MonthlyFee) -> None:
    now = process.cause()
    fee.note_charged(now)
    linked = {"charged_link_ids": [str(each) for each in fee.due.link_ids], "month": fee.due.month}
    charge = charge_of("monthly_link_fee", fee.id, fee.due.price, linked)
    wallet = wallet_id(fee.due.organization_id)
    process.committer.commit(wallet, lambda w: w.charge(charge, now), fee)
