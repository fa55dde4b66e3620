"""What breaks the invariants of refunds by hand."""

from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from domain.accounts.paid_price import PaidPrice, Repayment
from domain.accounts.refund_by_hand import HandRefund, Refundable
from domain.accounts.wallet import Refund
from domain.log.aggregate import Event
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger


def by_hand(
    forger: LinkForger, thing: Refundable, price: PaidPrice, reference: str = "t-1", **changes: Any
) -> tuple[Event, Refund]:
    """Return a refund of all that the price says, whether it may come or not, and its entry."""
    thing.paid = lambda: [(price, 0)]  # type: ignore[method-assign, assignment, return-value]  # so that it decides wrongly
    thing.still_open = lambda: None  # type: ignore[method-assign]  # as above
    thing.by_hand = ()
    asked = HandRefund(price.transaction_id, reference, "a complaint", None, {})
    refund = thing.refund_by_hand(asked, forger.cause)
    (event,) = thing.collect_events()
    return forged(event, **changes), refund


def entry(forger: LinkForger, refund: Refund) -> Event:
    forger.wallet.book([refund], forger.cause)
    (event,) = forger.wallet.collect_events()
    return event


def of_job(forger: LinkForger) -> tuple[Refundable, PaidPrice]:
    job = forger.job(count=2)
    forger.write(forger.completed(job, 0, 1), forger.finished(job))
    return job, job.created.price


def of_a_failure_that_gave_back_too_much(forger: LinkForger) -> int:
    link = forger.active()
    change = forger.changing(link, "0.02")
    forger.start(change)
    failed = forger.change_failure(change)
    (addition,) = change.requested.additions
    event, _ = by_hand(forger, change, addition.price)
    more = [*failed.refunds, Repayment(1, uuid4())]
    return forger.write(forged(failed, refunds=more), event) - 1


def twice_under_one_reference(forger: LinkForger) -> int:
    job, price = of_job(forger)
    half = replace(price, amount_micros=price.amount_micros // 2)
    for _ in range(2):
        event, refund = by_hand(forger, job, half)
        position = forger.write(event, entry(forger, refund))
    return position


def of_another_job(forger: LinkForger, **changes: Any) -> int:
    """Give back what another job has cost."""
    (job, _), (_, price) = of_job(forger), of_job(forger)
    event, _ = by_hand(forger, job, price, **changes)
    return forger.write(event)


def before_its_end(forger: LinkForger) -> int:
    job = forger.job()
    event, _ = by_hand(forger, job, job.created.price)
    return forger.write(event)


CRIMES: Crimes = [
    (of_another_job, "gives back a charge that is not of its stream"),
    (
        lambda f: of_another_job(f, organization_id=uuid4()),
        "which is no charge of its organization",
    ),
    (before_its_end, "gives back what an end may still give back"),
    (of_a_failure_that_gave_back_too_much, "fails twice, or gives another sum back"),
    (twice_under_one_reference, "it was given before"),
]
