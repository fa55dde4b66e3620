"""A stream as it was at a moment."""

from datetime import timedelta

from domain.accounts.organization import Organization
from domain.cause import Cause
from domain.log.log import Log, as_of
from tests.domain.build import ORGANIZATION, START, cause

MICROSECOND = timedelta(microseconds=1)


def test_it_is_what_its_events_up_to_that_moment_made_of_it(log: Log) -> None:
    organization = Organization.register(ORGANIZATION, cause(), name="Acme")
    organization.change_monthly_link_fee(1, cause(10))
    organization.change_status("suspended", cause(15))
    organization.change_monthly_link_fee(2, cause(20))
    log.append(organization)
    history = log.history(ORGANIZATION)
    expected = {0: (0, "active"), 9: (0, "active"), 10: (1, "active")}
    expected |= {15: (1, "suspended"), 99: (2, "suspended")}
    for minute, (fee_micros, status) in expected.items():
        then = as_of(Organization, history, cause(minute).at)
        assert (then.monthly_link_fee_micros, then.status) == (fee_micros, status)
    assert as_of(Organization, history, START - MICROSECOND) is None, "it is not there yet"


def test_an_event_of_a_clock_that_was_set_back_goes_with_the_one_before_it(log: Log) -> None:
    organization = Organization.register(ORGANIZATION, cause(), name="Acme")
    organization.change_monthly_link_fee(1, cause(10))
    organization.change_monthly_link_fee(2, Cause(cause(5).at, "request-2"))
    log.append(organization)
    history = log.history(ORGANIZATION)
    fees = [as_of(Organization, history, cause(minute).at) for minute in (5, 9, 10)]
    assert [each.monthly_link_fee_micros for each in fees if each is not None] == [0, 0, 2]
