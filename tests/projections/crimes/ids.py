"""What is right in everything but an id that follows from its facts: so it could happen twice."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from domain.accounts.approvals import ApprovalLimit, Proposal
from domain.accounts.currency import Ledger
from domain.accounts.operators import Operator
from domain.accounts.organization import ApiClient
from domain.accounts.paid_price import PaidPrice, Repayment
from domain.accounts.prices import LookupPrice
from domain.accounts.providers import Provider
from domain.accounts.wallet import Payout, Reversal, Wallet
from domain.cause import Cause
from domain.finance.month import Month
from domain.log.aggregate import Event, Root
from domain.log.discontinuity import Discontinuity
from domain.webhooks.endpoint import WebhookList
from tests.projections.crimes.adjustments import ANNA, waiting
from tests.projections.crimes.links import activates, an_imported_link
from tests.projections.crimes.orders import failed, lost_by
from tests.projections.crimes.refunds_by_hand import by_hand, of_job
from tests.projections.forgery import ITEM_MICROS, forged
from tests.projections.link_forgery import Crimes, LinkForger

NAMED = "follows from its facts"
# What begins each of these streams.
FIRST: dict[str, Callable[[LinkForger], Root | Event]] = {
    "wallet": lambda f: Wallet.open(uuid4(), "USD", f.cause),
    "ledger": lambda f: Ledger.open("USD", f.cause),
    "approval_limit": lambda f: ApprovalLimit.open(f.cause),
    "price": lambda f: LookupPrice.open(f.cause),
    **{
        f"proposal_of_a_{kind}": lambda f, kind=kind: proposed(f, kind)
        for kind in ("deposit", "adjustment", "refund", "reversal", "payout")
    },
    "adjustment_of_before": lambda f: waiting(
        f.organization_id, "c-9", Cause(f.cause.at, "r-1", ANNA)
    ),
    "adjustment": lambda f: f.adjustment(-5)[0],
    "month": lambda f: Month.close("2026-01", f.cause),
    "discontinuity": lambda f: Discontinuity.notice("b", 1, 2, f.cause),
    "provider": lambda f: Provider.register("twilio", f.cause),
    "client": lambda f: ApiClient.register(
        "cl_1", f.cause, organization_id=None, scopes=[], secret_hash="h"
    ),
    "webhook_list": lambda f: WebhookList.open(uuid4(), f.cause),
    "deposit": lambda f: f.deposit()[0],
    "reversal": lambda f: f.outgoing(Reversal, 5, deposit="bank-1")[0],
    "payout": lambda f: f.outgoing(Payout, 5)[0],
    "lost_order": lambda f: lost_by(f, failed(f)),
    "fee": lambda f: f.fee()[1],
    "esim": lambda f: f.reservation(f.requested("0"))[1],
    "operator": lambda f: Operator.register(uuid4(), f.cause, name="e", may=[], key_hash="h"),
}


def proposed(forger: LinkForger, kind: Any) -> Proposal:
    """Let something wait whose stream follows from its facts; here it does not."""
    facts: dict[str, Any] = {"reference": "r-1", "amount_micros": 5}
    if kind == "refund":
        facts |= {"transaction_id": uuid4(), "charged_for": uuid4(), "metadata": {}}
    if kind == "reversal":
        facts["deposit"] = "bank-1"
    return Proposal.of(forger.cause, kind, organization_id=forger.organization_id, **facts)


def elsewhere(name: str, forger: LinkForger) -> int:
    """Begin a stream under another id."""
    made = FIRST[name](forger)
    (event,) = [made] if isinstance(made, Event) else made.collect_events()
    return forger.write(forged(event, originator_id=uuid4()))


def _of_addition(forger: LinkForger, change: Callable[[Any], Any], price: str = "0.02") -> int:
    _, requested = forger.ask_for_change(forger.active(), price)
    return forger.write(forged(requested, additions=[*map(change, requested.additions)]))


def _other(price: PaidPrice) -> PaidPrice:
    return replace(price, transaction_id=uuid4())


def _paid_otherwise(forger: LinkForger, event: Any) -> int:
    return forger.write(forged(event, price=_other(event.price)))


def a_refund_by_hand_of_another_transaction(forger: LinkForger) -> int:
    job, price = of_job(forger)
    refund = Repayment(price.amount_micros, uuid4())
    return forger.write(by_hand(forger, job, price, refund=refund)[0])


CRIMES: Crimes = [
    (partial(elsewhere, each), NAMED if each != "operator" else "does not have the next number")
    for each in FIRST
]
CRIMES += [
    (lambda f: an_imported_link(f, "8988247000000000017"), NAMED),
    (lambda f: f.write(forged(f.deposit()[0], transaction_id=uuid4())), NAMED),
    (lambda f: _paid_otherwise(f, f.lookup()), NAMED),
    (lambda f: f.write(forged(f.job().created, originator_id=uuid4())), NAMED),
    (lambda f: _paid_otherwise(f, f.requests()), NAMED),
    (lambda f: _paid_otherwise(f, f.fee()[1]), NAMED),
    (lambda f: f.write(f.failed(f.job(), 0, refund=Repayment(ITEM_MICROS, uuid4()))), NAMED),
    (
        lambda f: f.write(f.cancelled(f.job(), refund=Repayment(4 * ITEM_MICROS, uuid4()))),
        NAMED,
    ),
    (lambda f: f.write(f.failure(f.begun(), refund=Repayment(100_000, uuid4()))), NAMED),
    (
        lambda f: f.write(
            f.change_failure(f.begun_change("0.02")[1], refunds=[Repayment(20_000, uuid4())])
        ),
        NAMED,
    ),
    (lambda f: _of_addition(f, lambda each: replace(each, price=_other(each.price))), NAMED),
    (lambda f: _of_addition(f, lambda each: replace(each, activation_id=uuid4()), "0"), NAMED),
    (lambda f: activates(f, activation_id=uuid4()), NAMED),
    (a_refund_by_hand_of_another_transaction, NAMED),
    (
        lambda f: f.write(forged(f.lookup(0), price=None, originator_topic="os.system")),
        "which is not its kind",
    ),
]
