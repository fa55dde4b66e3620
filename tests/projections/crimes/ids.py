"""What is right in everything but an id that follows from its facts: so it could happen twice."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from msgspec.structs import replace

from domain.accounts.approvals import ApprovalLimit, Proposal
from domain.accounts.currency import Ledger
from domain.accounts.operators import Operator
from domain.accounts.organization import ApiClient
from domain.accounts.paid_price import PaidPrice, Repayment
from domain.accounts.providers import Provider
from domain.accounts.refund_by_hand import HandRefund
from domain.accounts.wallet import Adjustment, Wallet
from domain.cause import Cause
from domain.finance.month import Month
from domain.links.bought_plan import TakenOver
from domain.links.link import Link
from domain.log.aggregate import Event
from domain.log.discontinuity import Discontinuity
from domain.webhooks.endpoint import WebhookList
from tests.domain.build_links import bought
from tests.projections.crimes.adjustments import ANNA
from tests.projections.crimes.ends import a_cancelled_link
from tests.projections.crimes.orders import failed, lost_by
from tests.projections.crimes.refunds_by_hand import by_hand, entry, of_job
from tests.projections.forgery import ITEM_MICROS, SEALED, forged
from tests.projections.link_forgery import Crime, LinkForger

ELSEWHERE = "is not that of its facts"
NAMED = "follows from its facts"
FIRST_EVENTS: dict[str, Callable[[LinkForger], Event]] = {
    "wallet": lambda f: Wallet.open(uuid4(), "USD", f.cause).collect_events()[0],
    "ledger": lambda f: Ledger.open("USD", f.cause).collect_events()[0],
    "approval_limit": lambda f: ApprovalLimit.open(f.cause).collect_events()[0],
    "proposal_of_a_deposit": lambda f: Proposal.of_deposit(
        f.organization_id, 5, "r-1", f.cause
    ).collect_events()[0],
    "proposal_of_a_refund": lambda f: Proposal.of_refund(
        f.organization_id, uuid4(), HandRefund(uuid4(), "r-1", "why", 5, {}), 5, f.cause
    ).collect_events()[0],
    "month": lambda f: Month.close("2026-01", f.cause).collect_events()[0],
    "discontinuity": lambda f: Discontinuity.notice("b", 1, 2, f.cause).collect_events()[0],
    "provider": lambda f: Provider.register("twilio", f.cause).collect_events()[0],
    "client": lambda f: ApiClient.register(
        "cl_1", f.cause, organization_id=None, scopes=[], secret_hash="h"
    ).collect_events()[0],
    "webhook_list": lambda f: WebhookList.open(uuid4(), f.cause).collect_events()[0],
    "fee": lambda f: f.fee()[1],
    "esim": lambda f: f.reservation(f.requested("0"))[1],
    "operator": lambda f: Operator.register(
        uuid4(), f.cause, name="eve", may=[], key_hash="h"
    ).collect_events()[0],
}


def a_second_deposit_under_one_reference(forger: LinkForger) -> int:
    forger.write(*forger.deposit())
    made, entry = forger.deposit()
    position = forger.write(forged(made, originator_id=uuid4()))
    forger.write(entry)
    return position


def a_second_adjustment_under_one_reference(forger: LinkForger) -> int:
    made, entry = forger.adjustment(-5)
    position = forger.write(forged(made, originator_id=uuid4()))
    forger.write(entry)
    return position


def a_proposal_elsewhere(forger: LinkForger) -> int:
    cause, owner = Cause(forger.cause.at, "r-1", ANNA), forger.organization_id
    made = Adjustment.make(owner, "c-9", 5, "why", cause, needs_approval=True)
    return forger.write(forged(made.collect_events()[0], originator_id=uuid4()))


def first_event_elsewhere(name: str, forger: LinkForger) -> int:
    return forger.write(forged(FIRST_EVENTS[name](forger), originator_id=uuid4()))


def a_lost_order_elsewhere(forger: LinkForger) -> int:
    link = failed(forger)
    (opened,) = lost_by(forger, link).collect_events()
    return forger.write(*link.collect_events(), forged(opened, originator_id=uuid4()))


def an_imported_link_elsewhere(forger: LinkForger) -> int:
    link_id, plan = uuid4(), TakenOver(uuid4(), bought(price="0"), forger.cause.at)
    facts = {"name": None, "sponsor_profile": None, "lpa": None, "endpoint_id": "e"}
    owner, iccid = forger.organization_id, "8988247000000000017"
    link = Link.take_over(
        link_id, forger.cause, organization_id=owner, iccid=iccid, plans=[plan], **facts
    )
    imported, *_ = link.collect_events()
    return forger.write(imported)


def a_deposit_of_another_transaction(forger: LinkForger) -> int:
    other, (made, entry) = uuid4(), forger.deposit()
    position = forger.write(forged(made, transaction_id=other))
    forger.write(forged(entry, transaction_id=other))
    return position


def a_lookup_of_another_transaction(forger: LinkForger) -> int:
    made = forged(forger.lookup(), price=PaidPrice(ITEM_MICROS, "USD", uuid4()))
    position = forger.write(made)
    forger.write(forger.charge_for(made))
    return position


def a_job_of_another_transaction(forger: LinkForger) -> int:
    job = forger.job(item_micros=0)
    price = PaidPrice(4 * ITEM_MICROS, "USD", uuid4())
    facts = {"price": price, "item_price_micros": ITEM_MICROS, "personal": SEALED}
    return forger.write(forged(job.created, originator_id=uuid4(), **facts))


def a_link_of_another_transaction(forger: LinkForger) -> int:
    (requested,) = forger.request().collect_events()
    return forger.write(forged(requested, price=PaidPrice(100_000, "USD", uuid4())))


def a_fee_of_another_transaction(forger: LinkForger) -> int:
    _, due = forger.fee()
    return forger.write(forged(due, price=replace(due.price, transaction_id=uuid4())))


def a_refund_of_items_under_another_id(forger: LinkForger) -> int:
    job = forger.job()
    return forger.write(forger.failed(job, 0, refund=Repayment(ITEM_MICROS, uuid4())))


def a_refund_of_open_items_under_another_id(forger: LinkForger) -> int:
    refund = Repayment(4 * ITEM_MICROS, uuid4())
    return forger.write(forger.cancelled(forger.job(), refund=refund))


def a_refund_of_a_link_under_another_id(forger: LinkForger) -> int:
    return forger.write(forger.failure(forger.begun(), refund=Repayment(100_000, uuid4())))


def a_refund_of_a_top_up_under_another_id(forger: LinkForger) -> int:
    _, change = forger.begun_change("0.02")
    return forger.write(forger.change_failure(change, refunds=[Repayment(20_000, uuid4())]))


def a_top_up_of_another_transaction(forger: LinkForger) -> int:
    return _of_addition(forger, lambda each: replace(each, price=_other(each.price)))


def a_top_up_of_another_activation(forger: LinkForger) -> int:
    return _of_addition(forger, lambda each: replace(each, activation_id=uuid4()))


def _of_addition(forger: LinkForger, change: Callable[[Any], Any]) -> int:
    link = forger.active()
    _, requested = forger.ask_for_change(link, "0.02")
    return forger.write(forged(requested, additions=[*map(change, requested.additions)]))


def _other(price: PaidPrice) -> PaidPrice:
    return replace(price, transaction_id=uuid4())


def a_first_plan_of_another_activation(forger: LinkForger) -> int:
    created, activated = forger.activation(forger.begun())
    forger.write(created)
    return forger.write(forged(activated, activation_id=uuid4()))


def a_cancellation_under_another_id(forger: LinkForger) -> int:
    ended = a_cancelled_link(forger).ended
    first, *rest = ended.refunds
    return forger.write(forged(ended, refunds=[replace(first, transaction_id=uuid4()), *rest]))


def a_refund_by_hand_twice_under_one_reference(forger: LinkForger) -> int:
    job, price = of_job(forger)
    half = PaidPrice(price.amount_micros // 2, "USD", price.transaction_id)
    first, refund = by_hand(forger, job, half)
    forger.write(first, entry(forger, refund))
    second, again = by_hand(forger, job, half)
    other: UUID = uuid4()
    position = forger.write(forged(second, refund=Repayment(half.amount_micros, other)))
    forger.write(forged(entry(forger, again), transaction_id=other))
    return position


def a_stream_that_no_process_can_load(forger: LinkForger) -> int:
    return forger.write(forged(forger.lookup(0), price=None, originator_topic="os.system"))


CRIMES: dict[Crime, str] = {
    a_second_deposit_under_one_reference: ELSEWHERE,
    a_second_adjustment_under_one_reference: ELSEWHERE,
    a_proposal_elsewhere: ELSEWHERE,
    a_lost_order_elsewhere: ELSEWHERE,
    an_imported_link_elsewhere: ELSEWHERE,
    a_deposit_of_another_transaction: NAMED,
    a_lookup_of_another_transaction: NAMED,
    a_job_of_another_transaction: NAMED,
    a_link_of_another_transaction: NAMED,
    a_fee_of_another_transaction: NAMED,
    a_refund_of_items_under_another_id: NAMED,
    a_refund_of_open_items_under_another_id: "that is not that of its open items",
    a_refund_of_a_link_under_another_id: NAMED,
    a_refund_of_a_top_up_under_another_id: "that are not those of its steps",
    a_top_up_of_another_transaction: NAMED,
    a_top_up_of_another_activation: NAMED,
    a_first_plan_of_another_activation: NAMED,
    a_cancellation_under_another_id: NAMED,
    a_refund_by_hand_twice_under_one_reference: NAMED,
    a_stream_that_no_process_can_load: "begins as 'os.system'",
}
for _name in FIRST_EVENTS:
    _crime = partial(first_event_elsewhere, _name)
    _crime.__name__ = f"{_name}_elsewhere"  # type: ignore[attr-defined]  # as a function has one
    CRIMES[_crime] = "does not have the next number" if _name == "operator" else ELSEWHERE
