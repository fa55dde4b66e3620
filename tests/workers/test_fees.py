"""What is owed for a month: the links, the fee and the status at its first instant, by the log."""

from collections.abc import Mapping
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


RATES = {
    moment("2026-01-20"): "2.25",
    JUST_BEFORE: "2.25",
    INSTANT: "2.25",
    JUST_AFTER: "1.50",
    INSTANT + timedelta(seconds=30): "1.50",
}


def test_the_fee_is_that_of_the_first_instant(process: Process) -> None:
    owners = {changed_at: customer(process) for changed_at in RATES}
    for changed_at, organization_id in owners.items():
        process.time.now = changed_at
        set_fee(process, organization_id, "2.25")
    reckon(process)
    for changed_at, owed in RATES.items():
        assert charged(process, owners[changed_at]) == [("2026-02", owed)], changed_at


# From when until when it is away, and whether it counts.
AWAY: Mapping[Away, bool] = {
    (moment("2026-01-20"), None): False,
    (JUST_BEFORE, JUST_AFTER): False,
    (INSTANT, None): False,
    (INSTANT, JUST_AFTER): False,
    (moment("2026-01-20"), JUST_BEFORE): True,
    (moment("2026-01-20"), INSTANT): True,
    (JUST_AFTER, None): True,
}


def test_a_link_counts_if_it_is_active_at_the_first_instant(process: Process) -> None:
    owners = {away: customer(process) for away in AWAY}
    for (suspended_at, reactivated_at), organization_id in owners.items():
        link_id = activate(process, organization_id)
        switch(process, link_id, "suspended", at=suspended_at)
        if reactivated_at is not None:
            switch(process, link_id, "active", at=reactivated_at)
    late = {INSTANT: True, JUST_AFTER: False}  # A new link counts from its very instant.
    news = {at: customer(process) for at in late}
    for at, organization_id in news.items():
        process.time.now = at
        activate(process, organization_id)
    reckon(process)
    for away, counts in AWAY.items():
        owed = frozen(process, owners[away])
        assert owed == {"2026-02": "3.00" if counts else "1.50"}, away
    for at, counts in late.items():
        assert frozen(process, news[at]) == {"2026-02": "3.00" if counts else "1.50"}, at


@pytest.mark.parametrize("status", ["suspended", "inactive"])
def test_an_organization_owes_if_it_is_active_at_the_first_instant(
    process: Process, status: Status
) -> None:
    owners = {away: customer(process) for away in AWAY}
    for (left_at, back_at), organization_id in owners.items():
        process.time.now = left_at
        set_status(process, organization_id, status)
        if back_at is not None:
            process.time.now = back_at
            set_status(process, organization_id, "active")
    reckon(process)
    for away, owes in AWAY.items():
        owed = [("2026-02", "1.50")] if owes else []
        assert charged(process, owners[away]) == owed, away
