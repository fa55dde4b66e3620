"""The entries of a wallet that links, plan changes and monthly fees announce."""

from uuid import UUID

from domain.accounts.paid_price import PaidPrice, Repayment
from domain.accounts.wallet import Charge, ChargeKind, Metadata, Reference, Refund
from domain.links.bought_plan import BoughtPlan

TYPES = {"activation": "link", "topup": "plan_change", "monthly_link_fee": "monthly_fee"}


def charge_of(kind: ChargeKind, stream_id: UUID, price: PaidPrice, metadata: Metadata) -> Charge:
    """The charge that a stream has announced."""
    return Charge(
        transaction_id=price.transaction_id,
        kind=kind,
        amount_micros=price.amount_micros,
        currency=price.currency,
        reference=Reference(TYPES[kind], str(stream_id)),
        description=kind,
        metadata=metadata,
    )


def refund_of(
    kind: ChargeKind, stream_id: UUID, refund: Repayment, price: PaidPrice, metadata: Metadata
) -> Refund:
    """The refund that a failure has announced, of the charge of this price."""
    return Refund(
        transaction_id=refund.transaction_id,
        charge_id=price.transaction_id,
        amount_micros=refund.amount_micros,
        currency=price.currency,
        reference=Reference(TYPES[kind], str(stream_id)),
        description="Refund",
        reason="provisioning_error",
        metadata=metadata,
    )


def metadata_of(link_id: UUID, plan: BoughtPlan) -> Metadata:
    """What the entries of a plan say of it and of its link."""
    return {"link_id": str(link_id), "plan_id": str(plan.plan_id), "plan_name": plan.name}
