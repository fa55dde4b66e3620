"""An organization: its facts change once each, and some of them only so often a day."""

from collections.abc import Callable
from typing import Any

import pytest

from domain.accounts.organization import THRESHOLDS_MAX, Organization, Status
from domain.errors import RateLimited
from domain.log.aggregate import Event
from tests.domain.build import ORGANIZATION, cause
from tests.story import Story, fact

Change = Callable[[Organization], object]


def registered() -> Story[Organization]:
    return Story(Organization.register(ORGANIZATION, cause(), name="Ærø Telecom"))


def status(value: Status) -> Change:
    return lambda its: its.change_status(value, cause(1))


def brand(colour: str | None, logo: str | None) -> Change:
    return lambda its: its.set_brand(colour, logo, cause())


def fact_of(change: Any, *values: Any) -> list[Change]:
    """Return the changes that set a fact to one value after the other."""
    return [lambda its, value=value: change(its, value, cause()) for value in values]


LIMIT = (7, 0, None)  # A limit of zero is one.


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (Organization.Suspended, [status("suspended")]),
        (Organization.Deactivated, [status("inactive")]),
        (
            Organization.LowBalanceThresholdSet,
            fact_of(Organization.set_low_balance_threshold, *LIMIT),
        ),
        (Organization.RateLimitSet, fact_of(Organization.set_rate_limit, *LIMIT)),
        (Organization.SpendingLimitSet, fact_of(Organization.set_spending_limit, *LIMIT)),
        (
            Organization.CustomerNumberSet,
            fact_of(Organization.set_customer_number, "10001", "10002", None),
        ),
        (
            Organization.BrandSet,
            [brand("#1a4fa0", None), brand("#1a4fa0", "iVBORw0KGgo="), brand(None, None)],
        ),
    ],
)
def test_what_is_so_already_is_no_event(event: type[Event], changes: list[Change]) -> None:
    story = registered().given()
    for change in changes:
        story.when(change).then(fact(event))
        story.when(change).then()


@pytest.mark.parametrize("before", ["active", "suspended", "inactive"])
def test_every_status_leads_to_every_other(before: Status) -> None:
    events = {
        "active": Organization.Activated,
        "suspended": Organization.Suspended,
        "inactive": Organization.Deactivated,
    }
    for after in events.keys() - {before}:
        story = registered().given(status(before))
        story.when(status(after)).then(fact(events[after]), status=after)


def test_a_threshold_is_changed_some_times_a_day_and_its_stream_stays_short() -> None:
    def threshold(micros: int | None, minute: int = 0) -> Change:
        return lambda its: its.set_low_balance_threshold(micros, cause(minute))

    story = registered().given(*map(threshold, range(THRESHOLDS_MAX)))
    story.when(threshold(THRESHOLDS_MAX - 1)).then()
    story.when(threshold(None)).refused(RateLimited)
    story.when(threshold(None, 12 * 60)).then(fact(Organization.LowBalanceThresholdSet))
