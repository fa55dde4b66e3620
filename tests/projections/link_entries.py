"""Links, changes of their plans and monthly fees, and the entries that they announce."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.paid_price import PaidPrice, Repayment
from domain.accounts.wallet import Charge, ChargeKind, Metadata, Reference, Refund
from domain.catalogue.plan import SponsorProfile
from domain.cause import Cause
from domain.links.bought_plan import BoughtPlan
from domain.links.link import Link
from domain.links.network import Addon
from domain.links.plan_change import PlanChange, Removal

SOON = timedelta(seconds=15)

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


def asked_link(
    owner: UUID, plan: BoughtPlan, profile: SponsorProfile, cause: Cause, name: str | None = None
) -> Link:
    """A link that was asked for; its name is in clear, as releases before 1.0.0 wrote it."""
    facts = {"organization_id": owner, "name": None, "plan": plan, "sponsor_profiles": [profile]}
    link = Link.request(uuid4(), cause, currency="USD", deadline=cause.at + SOON, **facts)
    vars(link.requested)["name"] = name
    return link


def asked_change(
    link: Link, remove: Sequence[UUID], plans: Sequence[BoughtPlan], cause: Cause
) -> PlanChange:
    removals = [Removal(each, link.activations[each].plan) for each in remove]
    facts = {"organization_id": link.organization_id, "link_id": link.id, "removals": removals}
    terms = {"plans": plans, "currency": "USD", "deadline": cause.at + SOON}
    return PlanChange.request(uuid4(), cause, **facts, **terms)


def do_step(change: PlanChange, link: Link, addon_id: str, cause: Cause) -> None:
    """Do the present step of a change, on itself and on its link."""
    step = change.next
    if isinstance(step, Removal):
        change.record(PlanChange.PlanRemovalDone, cause, index=change.done)
        link.remove_plan(step.activation_id, cause)
    else:
        change.record(
            PlanChange.PlanAdditionDone, cause, index=change.done, addon_id=addon_id, adopted=False
        )
        link.add_plan(step.activation_id, step.plan, Addon(addon_id), cause)


def due_fee(
    owner: UUID, month: str, links: Sequence[UUID], cause: Cause, fee_micros: int
) -> MonthlyFee:
    return MonthlyFee.fall_due(
        owner, month, cause, fee_micros=fee_micros, link_ids=links, currency="USD"
    )
