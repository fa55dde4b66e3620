"""What breaks the invariants of closed months."""

from datetime import timedelta
from uuid import uuid4

from domain.cause import Cause
from domain.finance.month import Month
from domain.months import first_instant
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crime, LinkForger


def closed(month: str, after_days: int = 32) -> Month.Closed:
    at = first_instant(month) + timedelta(days=after_days)
    (event,) = Month.close(month, Cause(at, "month")).pending_events
    assert isinstance(event, Month.Closed)
    return event


def a_month_that_is_left_out(forger: LinkForger) -> int:
    return forger.write(closed("2026-01"), closed("2026-03"))


def a_month_that_is_closed_twice(forger: LinkForger) -> int:
    return forger.write(closed("2026-01"), forged(closed("2026-01"), originator_id=uuid4()))


def a_month_that_is_closed_before_its_end(forger: LinkForger) -> int:
    return forger.write(closed("2026-01", after_days=30))


CRIMES: dict[Crime, str] = {
    a_month_that_is_left_out: "is closed after 2026-01",
    a_month_that_is_closed_twice: "is closed after 2026-01",
    a_month_that_is_closed_before_its_end: "is closed before its end",
}
