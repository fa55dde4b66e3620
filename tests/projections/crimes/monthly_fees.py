"""What breaks the invariants of monthly fees."""

from msgspec.structs import replace

from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger


def a_fee_of_another_sum_than_its_links(forger: LinkForger) -> int:
    _, due = forger.fee(2)
    return forger.write(forged(due, price=replace(due.price, amount_micros=10_000)))


def a_fee_that_is_charged_twice(forger: LinkForger) -> int:
    fee, due = forger.fee()
    forger.write(due, *forger.fee_charged(fee))
    return forger.write(forger.fee_charged(fee)[0])


def a_fee_that_is_charged_at_another_price(forger: LinkForger) -> int:
    fee, due = forger.fee()
    charged, _ = forger.fee_charged(fee)
    return forger.write(due, forged(charged, price=replace(due.price, amount_micros=20_000)))


CRIMES: Crimes = [
    (lambda f: f.write(forged(f.fee()[1], timestamp=f.cause.at)), "falls due before its month"),
    (a_fee_of_another_sum_than_its_links, "is another sum than that of its links"),
    (a_fee_that_is_charged_twice, "is charged before it is due, twice, or otherwise"),
    (a_fee_that_is_charged_at_another_price, "is charged before it is due, twice, or otherwise"),
]
