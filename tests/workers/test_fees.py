"""What is owed for a month: the links, the fee and the status at its first instant, by the log."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from domain.accounts.monthly_fee import monthly_fee_id
from domain.accounts.organization import Status
from domain.accounts.wallet import Reference
from domain.money import parse_amount
from tests.installation import Installation, Process, SetClock
from tests.workers.fees import (
    activate,
    charged,
    charges,
    customer,
    failures,
    fees,
    frozen,
    moment,
    set_fee,
    set_status,
    switch,
)

pytestmark = pytest.mark.any_database

INSTANT = moment("2026-02-01")
MICROSECOND = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)
JUST_BEFORE, JUST_AFTER = INSTANT - MICROSECOND, INSTANT + MICROSECOND

Away = tuple[datetime, datetime | None]  # From when, until when.


@pytest.fixture
def clock() -> SetClock:
    return SetClock(moment("2026-01-15 12:00"))


@pytest.fixture
def process(installation: Installation, clock: SetClock) -> Process:
    return installation.process(clock)


@pytest.fixture
def organization_id(process: Process) -> UUID:
    """An organization with one link, which costs 1.50 a month."""
    return customer(process)


def reckon(process: Process, clock: SetClock) -> None:
    """Let the first tick come that may look at February."""
    clock.now = INSTANT + MINUTE
    process.monthly_fees.run()


def test_each_active_link_costs_the_fee_of_the_month_once(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    activate(process, organization_id)
    reckon(process, clock)
    assert charged(process, organization_id) == [("2026-02", "3.00")]
    for _ in range(3):
        clock.forward(hours=25)
        process.monthly_fees.run()
    assert charged(process, organization_id) == [("2026-02", "3.00")]
    assert failures(process) == []


def test_the_transaction_says_what_it_was_for(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    activate(process, organization_id)
    with process.views.reading() as connection:
        process.projector.catch_up()
        links = process.link_spans.active_at(connection, organization_id, clock.now)
    reckon(process, clock)
    (made,) = charges(process, organization_id)
    assert made.reference == Reference(
        "monthly_fee", str(monthly_fee_id(organization_id, "2026-02"))
    )
    assert (made.kind, made.direction) == ("monthly_link_fee", "debit")
    assert made.description == "Monthly link fee 2026-02"
    assert made.charged_at == INSTANT + MINUTE
    assert made.balance_micros == parse_amount("97.00")
    assert made.metadata == {
        "month": "2026-02",
        "charged_link_ids": [str(link_id) for link_id in links],
        "fee_per_link": "1.50",
    }
    assert len(links) == 2


def test_nothing_is_frozen_before_the_month_is_a_minute_old(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    for now in (JUST_BEFORE, INSTANT, INSTANT + MINUTE - MICROSECOND):
        clock.now = now
        process.monthly_fees.run()
        assert frozen(process, organization_id) == {}
    reckon(process, clock)
    assert frozen(process, organization_id) == {"2026-02": "1.50"}


def test_what_reaches_the_log_within_that_minute_counts(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    link_id = activate(process, organization_id)
    process.monthly_fees.run()
    clock.now = INSTANT + timedelta(seconds=30)
    process.monthly_fees.run()
    switch(process, link_id, "suspended", at=JUST_BEFORE)
    reckon(process, clock)
    assert frozen(process, organization_id) == {"2026-02": "1.50"}


@pytest.mark.parametrize(
    ("changed_at", "owed"),
    [
        (moment("2026-01-20"), "2.25"),
        (JUST_BEFORE, "2.25"),
        (INSTANT, "2.25"),
        (JUST_AFTER, "1.50"),
        (INSTANT + timedelta(seconds=30), "1.50"),
    ],
)
def test_the_fee_is_that_of_the_first_instant(
    process: Process, organization_id: UUID, clock: SetClock, changed_at: datetime, owed: str
) -> None:
    clock.now = changed_at
    set_fee(process, organization_id, "2.25")
    reckon(process, clock)
    assert charged(process, organization_id) == [("2026-02", owed)]


def test_a_fee_that_was_zero_or_has_become_zero_costs_nothing(
    process: Process, clock: SetClock
) -> None:
    always, lately = customer(process, fee="0"), customer(process)
    set_fee(process, lately, "0")
    reckon(process, clock)
    assert frozen(process, always) == frozen(process, lately) == {}


def test_no_links_cost_nothing(process: Process, clock: SetClock) -> None:
    organization_id = customer(process, links=0)
    reckon(process, clock)
    clock.now = INSTANT + timedelta(days=3)
    activate(process, organization_id)
    process.monthly_fees.run()
    assert frozen(process, organization_id) == {}


@pytest.mark.parametrize(
    ("away", "counts"),
    [
        ((moment("2026-01-20"), None), False),
        ((JUST_BEFORE, JUST_AFTER), False),
        ((INSTANT, None), False),
        ((INSTANT, JUST_AFTER), False),
        ((moment("2026-01-20"), JUST_BEFORE), True),
        ((moment("2026-01-20"), INSTANT), True),
        ((JUST_AFTER, None), True),
    ],
)
def test_a_link_counts_if_it_is_active_at_the_first_instant(
    process: Process, organization_id: UUID, clock: SetClock, away: Away, *, counts: bool
) -> None:
    suspended_at, reactivated_at = away
    link_id = activate(process, organization_id)
    switch(process, link_id, "suspended", at=suspended_at)
    if reactivated_at is not None:
        switch(process, link_id, "active", at=reactivated_at)
    reckon(process, clock)
    assert frozen(process, organization_id) == {"2026-02": "3.00" if counts else "1.50"}


@pytest.mark.parametrize(("activated_at", "owed"), [(INSTANT, "3.00"), (JUST_AFTER, "1.50")])
def test_a_new_link_counts_from_its_very_instant(
    process: Process, organization_id: UUID, clock: SetClock, activated_at: datetime, owed: str
) -> None:
    clock.now = activated_at
    activate(process, organization_id)
    reckon(process, clock)
    assert frozen(process, organization_id) == {"2026-02": owed}


@pytest.mark.parametrize("status", ["suspended", "inactive"])
@pytest.mark.parametrize(
    ("away", "owes"),
    [
        ((moment("2026-01-20"), None), False),
        ((INSTANT, None), False),
        ((JUST_BEFORE, JUST_AFTER), False),
        ((moment("2026-01-20"), INSTANT), True),
        ((JUST_AFTER, None), True),
    ],
)
def test_an_organization_owes_if_it_is_active_at_the_first_instant(
    process: Process, clock: SetClock, status: Status, away: Away, *, owes: bool
) -> None:
    organization_id = customer(process)
    left_at, back_at = away
    clock.now = left_at
    set_status(process, organization_id, status)
    if back_at is not None:
        clock.now = back_at
        set_status(process, organization_id, "active")
    reckon(process, clock)
    assert charged(process, organization_id) == ([("2026-02", "1.50")] if owes else [])


def test_the_month_of_registration_is_free(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    clock.now = moment("2026-01-31 23:59:59")
    process.monthly_fees.run()
    assert frozen(process, organization_id) == {}
    reckon(process, clock)
    assert list(frozen(process, organization_id)) == ["2026-02"]


def test_what_registers_after_the_month_was_reckoned_owes_the_next_one(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    reckon(process, clock)
    clock.now = moment("2026-02-10")
    late = customer(process)
    process.monthly_fees.run()
    clock.now = moment("2026-03-01 00:01")
    process.monthly_fees.run()
    assert list(frozen(process, late)) == ["2026-03"]
    assert list(frozen(process, organization_id)) == ["2026-02", "2026-03"]


def test_months_go_on_through_a_new_year_and_a_leap_february(
    installation: Installation,
) -> None:
    clock = SetClock(moment("2027-11-15"))
    process = installation.process(clock)
    organization_id = customer(process)
    while clock.now < moment("2028-04-15"):
        if clock.now == moment("2028-02-29 12:00"):
            activate(process, organization_id)
        process.monthly_fees.run()
        clock.forward(hours=12)
    assert charged(process, organization_id) == [
        ("2027-12", "1.50"),
        ("2028-01", "1.50"),
        ("2028-02", "1.50"),
        ("2028-03", "3.00"),
        ("2028-04", "3.00"),
    ]
    days = [fee.due_at.strftime("%m-%d %H:%M") for fee in fees(process, organization_id)]
    assert days == ["12-01 12:00", "01-01 12:00", "02-01 12:00", "03-01 12:00", "04-01 12:00"]
    assert failures(process) == []
