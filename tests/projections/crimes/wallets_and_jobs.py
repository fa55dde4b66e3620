"""What breaks the invariants of wallets, deposits, lookups and jobs."""

from typing import Any, cast
from uuid import uuid4

from domain.accounts.currency import Ledger
from domain.accounts.paid_price import PaidPrice
from domain.accounts.spending import Spending
from domain.accounts.wallet import Reference, Wallet
from domain.cause import utc_now
from domain.months import month_of
from tests.projections.crimes.months import closed
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger


def spent_now(limit_micros: int, spent_micros: int) -> Spending:
    return Spending(limit_micros, month_of(utc_now()), spent_micros)


def charged(forger: LinkForger, **changes: Any) -> int:
    """Charge for a lookup; something in it differs."""
    lookup = forger.lookup()
    forger.write(lookup)
    return forger.write(forger.charge_for(lookup, **changes))


def one_charge_for_two_lookups(forger: LinkForger) -> int:
    first, second = forger.lookup(), forger.lookup()
    forger.write(first)
    return forger.write(forged(second, price=first.price))


def a_correction_of_before_behind_a_closed_month(forger: LinkForger) -> int:
    late = forger.adjusted(-5)
    forger.write(closed("2026-01"))
    return forger.write(late)


def a_stream_that_begins_in_the_midst(forger: LinkForger) -> int:
    made, deposited = forger.deposit()
    position = forger.write(forged(made, originator_version=2))
    forger.write(deposited)
    return position


def an_amount_that_is_not_positive(forger: LinkForger) -> int:
    lookup = forger.lookup(1)
    forger.write(forged(lookup, price=PaidPrice(0, "USD", lookup.price.transaction_id)))
    return forger.write(forger.charge_for(lookup, amount_micros=0, balance_micros=1_000_000))


def a_lookup_that_brings_money(forger: LinkForger) -> int:
    lookup = forger.lookup()
    price = PaidPrice(-5, "USD", lookup.price.transaction_id)
    forger.write(forged(lookup, price=price))
    return forger.write(forger.charge_for(lookup, amount_micros=-5, balance_micros=1_000_005))


def more_than_there_is(forger: LinkForger) -> int:
    lookup, forger.wallet.balance_micros = forger.lookup(2_000_000), 2_000_000
    forger.write(lookup)
    return forger.write(forger.charge_for(lookup, balance_micros=-1_000_000))


def a_charge_that_is_taken_twice(forger: LinkForger) -> int:
    lookup = forger.lookup()
    forger.write(lookup, forger.charge_for(lookup))
    return forger.write(forger.charge_for(lookup))


def a_charge_beyond_the_limit(forger: LinkForger) -> int:
    limited(forger, spent_now(5_000, 0))
    lookup, forger.wallet.spending = forger.lookup(), spent_now(2_000_000, 0)
    forger.write(lookup)
    return forger.write(forger.charge_for(lookup, spending=spent_now(5_000, 10_000)))


def a_charge_that_forgets_the_limit(forger: LinkForger) -> int:
    limited(forger, spent_now(2_000_000, 0))
    return charged(forger, spending=None)


def a_limit_that_forgets_what_was_spent(forger: LinkForger) -> int:
    lookup = forger.lookup()
    forger.write(lookup, forger.charge_for(lookup))
    return limited(forger, spent_now(2_000_000, 0))


def limited(forger: LinkForger, spending: Spending | None, **changes: Any) -> int:
    forger.wallet.limit_spending(spending, forger.cause)
    [event] = forger.wallet.collect_events()
    return forger.write(forged(cast("Wallet.SpendingLimited", event), **changes))


def an_item_that_ends_twice(forger: LinkForger) -> int:
    job = forger.job()
    forger.write(forger.completed(job, 0))
    return forger.write(forger.completed(job, 1, indexes=[0]))


def a_job_that_finishes_with_open_items(forger: LinkForger) -> int:
    job = forger.job()
    forger.write(forger.completed(job, 0, 1, 2))
    return forger.write(forger.finished(job))


def a_cancellation_of_nothing(forger: LinkForger) -> int:
    job = forger.job(item_micros=0)
    forger.write(forger.completed(job, 0, indexes=[0, 1, 2, 3]))
    return forger.write(forger.cancelled(job, count=0))


def another_ledger(forger: LinkForger) -> int:
    made = Ledger.begin(Ledger.Opened, forger.cause, Ledger.id_of(), currency="EUR")
    return forger.write(*made.collect_events())


def by_itself(entry: Any) -> Any:
    """Let an entry name nothing but itself, as corrections of earlier releases do."""
    kind = "deposit" if entry.TOPIC == "wallet.deposited" else "adjustment"
    return forged(entry, reference=Reference(kind, str(entry.transaction_id)))


def an_item_that_ends_after_its_job_was_cancelled(forger: LinkForger) -> int:
    job = forger.job(item_micros=0)
    late = forger.completed(job, 0)
    forger.write(forged(forger.cancelled(job, count=4), originator_version=2))
    return forger.write(forged(late, originator_version=3))


UNSAID, WRONG_CURRENCY = "no event before it says so", "its currency is not USD"
CRIMES: Crimes = [
    (lambda f: f.write(*Wallet.open(uuid4(), "EUR", f.cause).collect_events()), WRONG_CURRENCY),
    (another_ledger, WRONG_CURRENCY),
    (lambda f: charged(f, balance_micros=1_000_000), "its balance is not"),
    (lambda f: charged(f, sequence=3), "its sequence is not 3"),
    (a_stream_that_begins_in_the_midst, "version 1 of its stream is missing"),
    (an_amount_that_is_not_positive, "its amount is not above zero"),
    (a_lookup_that_brings_money, "its amount is not above zero"),
    (more_than_there_is, "its balance is below zero"),
    (a_charge_that_is_taken_twice, "takes the same charge again"),
    (lambda f: f.write(f.lookup()), ", which never comes"),
    (lambda f: f.write(f.failed(f.job(), 0)), ", which never comes"),
    (lambda f: f.write(f.deposit()[0]), ", which never comes"),
    (one_charge_for_two_lookups, "announces again what has not come"),
    (a_correction_of_before_behind_a_closed_month, UNSAID),
    (a_charge_beyond_the_limit, "spends more than the limit"),
    (a_charge_that_forgets_the_limit, "states another limit"),
    (a_limit_that_forgets_what_was_spent, "states another limit"),
    (lambda f: limited(f, None, balance_micros=2_000_000), "moves the wallet whose limit it sets"),
    (lambda f: limited(f, None, sequence=9), "moves the wallet whose limit it sets"),
    (lambda f: charged(f, spending=spent_now(9, 9)), "states another limit"),
    (lambda f: f.write(by_itself(f.adjustment(-5)[1])), UNSAID),
    (lambda f: f.write(f.adjusted(-5), by_itself(f.deposit()[1])), UNSAID),
    (lambda f: f.write(f.adjusted(-5), f.adjustment(-5)[1]), UNSAID),
    (an_item_that_ends_twice, "ends an item twice"),
    (a_job_that_finishes_with_open_items, "finishes with open items"),
    (a_cancellation_of_nothing, "cancels other items than the open ones"),
    (an_item_that_ends_after_its_job_was_cancelled, "its job has not begun, or has ended"),
]
