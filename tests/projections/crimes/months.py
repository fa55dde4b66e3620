"""What breaks the invariants of closed months and of monthly fees."""

from datetime import timedelta
from uuid import uuid4

from domain.cause import Cause
from domain.finance.statement import Month
from domain.months import first_instant
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger


def closed(month: str, after_days: int = 32) -> Month.Closed:
    at = first_instant(month) + timedelta(days=after_days)
    (event,) = Month.close(month, Cause(at, "month")).pending_events
    return event


def a_fee_that_is_charged_twice(forger: LinkForger) -> int:
    fee, due = forger.fee()
    forger.write(due, *forger.fee_charged(fee))
    return forger.write(forger.fee_charged(fee)[0])


CRIMES: Crimes = [
    (
        lambda f: f.write(
            closed("2026-01"), forged(f.lookup(), timestamp=first_instant("2026-01"))
        ),
        "was closed before its end",
    ),
    (
        lambda f: f.write(closed("2026-01"), forged(closed("2026-01"), originator_id=uuid4())),
        "is closed after 2026-01",
    ),
    (lambda f: f.write(closed("2026-01", after_days=30)), "is closed before its end"),
    (a_fee_that_is_charged_twice, "is charged before it is due, twice, or otherwise"),
]
