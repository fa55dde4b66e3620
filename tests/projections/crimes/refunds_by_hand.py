"""What breaks the invariants of refunds by hand."""

from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from domain.accounts.paid_price import PaidPrice, Repayment
from domain.accounts.refund_by_hand import HandRefund, Refundable
from domain.accounts.wallet import Refund
from domain.log.aggregate import Event
from domain.lookups.number_lookup import NumberLookup
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crime, LinkForger


def by_hand(
    forger: LinkForger, thing: Refundable, price: PaidPrice, reference: str = "t-1", **changes: Any
) -> tuple[Event, Refund]:
    """Return a refund of all that the price says, whether it may come or not, and its entry."""
    thing.paid = lambda: [(price, 0)]  # type: ignore[method-assign, assignment, return-value]  # so that it decides wrongly
    thing.still_open = lambda: None  # type: ignore[method-assign]  # as above
    thing.by_hand = ()
    asked = HandRefund(price.transaction_id, reference, "a complaint", None, {})
    refund = thing.refund_by_hand(asked, forger.cause)
    assert refund is not None
    (event,) = thing.collect_events()
    return forged(event, **changes), refund


def entry(forger: LinkForger, refund: Refund) -> Event:
    forger.wallet.refund(refund, forger.cause)
    (event,) = forger.wallet.collect_events()
    return event


def of_job(forger: LinkForger) -> tuple[Refundable, PaidPrice]:
    job = forger.job(count=2)
    forger.write(forger.completed(job, 0, 1), forger.finished(job))
    assert job.created.price is not None
    return job, job.created.price


def more_than_the_charge(forger: LinkForger) -> int:
    job, price = of_job(forger)
    more = PaidPrice(price.amount_micros + 1, "USD", price.transaction_id)
    event, refund = by_hand(forger, job, more)
    position = forger.write(event)
    forger.write(entry(forger, refund))
    return position


def the_whole_charge_twice(forger: LinkForger) -> int:
    job, price = of_job(forger)
    first, refund = by_hand(forger, job, price)
    forger.write(first, entry(forger, refund))
    second, again = by_hand(forger, job, price, "t-2")
    position = forger.write(second)
    forger.write(entry(forger, again))
    return position


def what_a_failure_gave_back(forger: LinkForger) -> int:
    link = forger.active()
    change = forger.changing(link, "0.02")
    forger.start(change)
    failed, ended = forger.change_failure(change), forger.finish(change, link)
    forger.write(failed, *ended, *forger.change_money_back(change))
    (addition,) = change.requested.additions
    assert addition.price is not None
    event, refund = by_hand(forger, change, addition.price)
    position = forger.write(event)
    forger.write(entry(forger, refund))
    return position


def what_was_never_charged(forger: LinkForger) -> int:
    link = forger.requested()
    assert link.requested.price is not None
    event, refund = by_hand(forger, link, link.requested.price)
    position = forger.write(event)
    forger.write(entry(forger, refund))
    return position


def a_job_that_runs(forger: LinkForger) -> int:
    job = forger.job(count=2)
    assert job.created.price is not None
    event, refund = by_hand(forger, job, job.created.price)
    position = forger.write(event)
    forger.write(entry(forger, refund))
    return position


def to_another_organization(forger: LinkForger) -> int:
    job, price = of_job(forger)
    event, _ = by_hand(forger, job, price, organization_id=uuid4())
    return forger.write(event)


def of_a_lookup_that_lacks_a_version(forger: LinkForger) -> int:
    answered = forger.lookup()
    charge = forger.charge_for(answered)
    forger.write(answered, charge)
    lookup = forger.process.log.get(NumberLookup, answered.originator_id)
    assert answered.price is not None
    event, refund = by_hand(forger, lookup, answered.price, originator_version=3)
    position = forger.write(event)
    forger.write(entry(forger, refund))
    return position


def of_nothing(forger: LinkForger) -> int:
    job, price = of_job(forger)
    event, _ = by_hand(forger, job, price, originator_id=uuid4(), originator_version=1)
    return forger.write(event)


def of_a_failure_that_gave_back_too_much(forger: LinkForger) -> int:
    link = forger.active()
    change = forger.changing(link, "0.02")
    forger.start(change)
    failed = forger.change_failure(change)
    (addition,) = change.requested.additions
    assert addition.price is not None
    event, _ = by_hand(forger, change, addition.price)
    more = [*failed.refunds, Repayment(1, uuid4())]
    return forger.write(forged(failed, refunds=more), event) - 1


def without_its_entry(forger: LinkForger) -> int:
    job, price = of_job(forger)
    return forger.write(by_hand(forger, job, price)[0])


def an_entry_that_nobody_decided(forger: LinkForger) -> int:
    job, price = of_job(forger)
    _, refund = by_hand(forger, job, price)
    return forger.write(entry(forger, replace(refund, charge_id=uuid4())))


CRIMES: dict[Crime, str] = {
    more_than_the_charge: "exceeds what is left of its charge",
    the_whole_charge_twice: "exceeds what is left of its charge",
    what_a_failure_gave_back: "exceeds what is left of its charge",
    what_was_never_charged: "exceeds what is left of its charge",
    a_job_that_runs: "is refunded by hand before its end",
    to_another_organization: "is for another organization",
    of_a_lookup_that_lacks_a_version: "jumps to version 3",
    of_nothing: "exceeds what is left of its charge",
    of_a_failure_that_gave_back_too_much: "keeps another sum than it added plans for",
    without_its_entry: "was announced and not given",
    an_entry_that_nobody_decided: "has no failure that names it",
}
