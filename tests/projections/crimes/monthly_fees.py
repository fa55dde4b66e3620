"""What breaks the invariants of monthly fees."""

from tests.projections.link_forgery import Crimes, LinkForger


def a_fee_that_is_charged_twice(forger: LinkForger) -> int:
    fee, due = forger.fee()
    forger.write(due, *forger.fee_charged(fee))
    return forger.write(forger.fee_charged(fee)[0])


CRIMES: Crimes = [
    (a_fee_that_is_charged_twice, "is charged before it is due, twice, or otherwise"),
]
