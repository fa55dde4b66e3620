"""What is owed for a month: the links, the fee and the status at its first instant, by the log."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from domain.accounts.organization import Status
from tests.installation import Process
from tests.workers.fees import (
    activate,
    bill,
    charged,
    clock_at,
    customer,
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


clock = clock_at("2026-01-15 12:00")


@pytest.fixture
def organization_id(process: Process) -> UUID:
    """An organization with one link, which costs 1.50 a month."""
    return customer(process)


def reckon(process: Process) -> None:
    """Let the first tick come that may look at February."""
    process.time.now = INSTANT + MINUTE
    bill(process)


def test_nothing_is_frozen_before_the_month_is_a_minute_old(
    process: Process, organization_id: UUID
) -> None:
    for now in (JUST_BEFORE, INSTANT, INSTANT + MINUTE - MICROSECOND):
        process.time.now = now
        bill(process)
        assert frozen(process, organization_id) == {}
    reckon(process)
    assert frozen(process, organization_id) == {"2026-02": "1.50"}


def test_what_reaches_the_log_within_that_minute_counts(
    process: Process, organization_id: UUID
) -> None:
    link_id = activate(process, organization_id)
    bill(process)
    process.time.now = INSTANT + timedelta(seconds=30)
    bill(process)
    switch(process, link_id, "suspended", at=JUST_BEFORE)
    reckon(process)
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
    process: Process, organization_id: UUID, changed_at: datetime, owed: str
) -> None:
    process.time.now = changed_at
    set_fee(process, organization_id, "2.25")
    reckon(process)
    assert charged(process, organization_id) == [("2026-02", owed)]


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
    process: Process, organization_id: UUID, away: Away, *, counts: bool
) -> None:
    suspended_at, reactivated_at = away
    link_id = activate(process, organization_id)
    switch(process, link_id, "suspended", at=suspended_at)
    if reactivated_at is not None:
        switch(process, link_id, "active", at=reactivated_at)
    reckon(process)
    assert frozen(process, organization_id) == {"2026-02": "3.00" if counts else "1.50"}


@pytest.mark.parametrize(("activated_at", "owed"), [(INSTANT, "3.00"), (JUST_AFTER, "1.50")])
def test_a_new_link_counts_from_its_very_instant(
    process: Process, organization_id: UUID, activated_at: datetime, owed: str
) -> None:
    process.time.now = activated_at
    activate(process, organization_id)
    reckon(process)
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
    process: Process, status: Status, away: Away, *, owes: bool
) -> None:
    organization_id = customer(process)
    left_at, back_at = away
    process.time.now = left_at
    set_status(process, organization_id, status)
    if back_at is not None:
        process.time.now = back_at
        set_status(process, organization_id, "active")
    reckon(process)
    assert charged(process, organization_id) == ([("2026-02", "1.50")] if owes else [])
