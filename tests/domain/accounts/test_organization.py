"""An organization: may it call, for how much, and does it look numbers up."""

from collections.abc import Callable
from typing import Any

import pytest

from domain.accounts.organization import THRESHOLDS_MAX, Organization, Status
from domain.errors import RateLimited
from domain.log.aggregate import Event
from tests.domain.build import ORGANIZATION, cause
from tests.story import Story, fact


def registered(price_micros: int | None = None, fee_micros: int = 0) -> Story[Organization]:
    return Story(
        Organization.register(
            ORGANIZATION,
            cause(),
            name="Ærø Telecom",
            price_micros=price_micros,
            monthly_link_fee_micros=fee_micros,
        )
    )


@pytest.mark.parametrize(
    ("before", "status", "event"),
    [
        ("active", "suspended", Organization.Suspended),
        ("active", "inactive", Organization.Deactivated),
        ("suspended", "active", Organization.Activated),
        ("suspended", "inactive", Organization.Deactivated),
        ("inactive", "active", Organization.Activated),
        ("inactive", "suspended", Organization.Suspended),
    ],
)
def test_every_status_leads_to_every_other(
    before: Status, status: Status, event: type[Event]
) -> None:
    story = registered().given(lambda organization: organization.change_status(before, cause(1)))
    story.when(lambda organization: organization.change_status(status, cause(2)))
    story.then(fact(event), status=status)


@pytest.mark.parametrize("status", ["active", "suspended", "inactive"])
def test_the_present_status_changes_nothing(status: Status) -> None:
    story = registered().given(lambda organization: organization.change_status(status, cause(1)))
    story.when(lambda organization: organization.change_status(status, cause(2))).then()


@pytest.mark.parametrize(
    ("set_it", "event", "field", "held"),
    [
        (
            Organization.set_low_balance_threshold,
            Organization.LowBalanceThresholdSet,
            "threshold_micros",
            "low_balance_threshold_micros",
        ),
        (
            Organization.set_rate_limit,
            Organization.RateLimitSet,
            "per_minute",
            "rate_limit_per_minute",
        ),
        (
            Organization.set_spending_limit,
            Organization.SpendingLimitSet,
            "limit_micros",
            "spending_limit_micros",
        ),
    ],
)
def test_a_limit_is_set_and_given_up_again_and_zero_is_one(
    set_it: Any, event: type[Event], field: str, held: str
) -> None:
    story = registered().given()
    for value in (7, 0, None):
        story.when(lambda organization, value=value: set_it(organization, value, cause()))
        story.then(fact(event, **{field: value}), **{held: value})
        story.when(lambda organization, value=value: set_it(organization, value, cause())).then()


def test_a_threshold_is_changed_some_times_a_day_and_its_stream_stays_short() -> None:
    def threshold(micros: int | None, minute: int = 0) -> Callable[[Organization], None]:
        return lambda organization: organization.set_low_balance_threshold(micros, cause(minute))

    story = registered().given(*map(threshold, range(THRESHOLDS_MAX)))
    story.when(threshold(THRESHOLDS_MAX - 1)).then()
    story.when(threshold(None)).refused(RateLimited)
    story.when(threshold(None, 12 * 60)).then(fact(Organization.LowBalanceThresholdSet))


def test_a_number_in_bookkeeping_is_set_changed_and_taken_away() -> None:
    def numbered(number: str | None) -> Callable[[Organization], None]:
        return lambda organization: organization.set_customer_number(number, cause())

    story = registered().given()
    story.when(numbered(None)).then()
    for number in ("10001", "10002", None):
        story.when(numbered(number))
        story.then(fact(Organization.CustomerNumberSet, customer_number=number))
        story.when(numbered(number)).then()


def test_a_brand_is_both_facts_at_once_and_the_present_one_changes_nothing() -> None:
    def branded(colour: str | None, logo: str | None) -> Callable[[Organization], None]:
        return lambda organization: organization.set_brand(colour, logo, cause())

    story = registered().given()
    for colour, logo in (("#1a4fa0", None), ("#1a4fa0", "iVBORw0KGgo="), (None, None)):
        story.when(branded(colour, logo))
        story.then(fact(Organization.BrandSet, colour=colour, logo=logo), brand_logo=logo)
        story.when(branded(colour, logo)).then()
