"""What is frozen is charged, the oldest month first, as soon as the balance covers it."""

import logging
from datetime import timedelta
from uuid import UUID

import pytest

from tests.installation import Installation, Process, SetClock
from tests.workers.fees import (
    activate,
    charged,
    customer,
    failures,
    frozen,
    moment,
    pay_in,
    set_fee,
    set_status,
)

DAY = timedelta(days=1)


@pytest.fixture
def clock() -> SetClock:
    return SetClock(moment("2026-01-15 12:00"))


@pytest.fixture
def process(installation: Installation, clock: SetClock) -> Process:
    return installation.process(clock)


def tick(process: Process, clock: SetClock, at: str) -> int:
    clock.now = moment(at)
    return process.monthly_fees.run()


def test_missed_months_are_charged_oldest_first_and_wait_for_a_deposit(
    process: Process, clock: SetClock
) -> None:
    organization_id = customer(process, balance="2.00")
    tick(process, clock, "2026-04-10 09:00")
    assert frozen(process, organization_id) == dict.fromkeys(
        ["2026-02", "2026-03", "2026-04"], "1.50"
    )
    assert charged(process, organization_id) == [("2026-02", "1.50")]
    tick(process, clock, "2026-04-11 09:00")
    assert charged(process, organization_id) == [("2026-02", "1.50")]
    pay_in(process, organization_id, "5.00")
    tick(process, clock, "2026-04-12 09:00")
    assert charged(process, organization_id) == [
        ("2026-02", "1.50"),
        ("2026-03", "1.50"),
        ("2026-04", "1.50"),
    ]
    assert failures(process) == []


def test_missed_months_are_reckoned_each_as_of_its_own_first_instant(
    process: Process, clock: SetClock
) -> None:
    organization_id = customer(process)
    clock.now = moment("2026-02-20")
    activate(process, organization_id)
    clock.now = moment("2026-03-20")
    set_fee(process, organization_id, "4")
    clock.now = moment("2026-04-20")
    set_status(process, organization_id, "suspended")
    clock.now = moment("2026-05-20")
    set_status(process, organization_id, "active")
    tick(process, clock, "2026-06-02 09:00")
    assert charged(process, organization_id) == [
        ("2026-02", "1.50"),
        ("2026-03", "3.00"),
        ("2026-04", "8.00"),
        ("2026-06", "8.00"),
    ]


def test_a_short_balance_is_tried_again_a_day_later_and_not_before(
    process: Process, clock: SetClock
) -> None:
    organization_id = customer(process, balance="0")
    tick(process, clock, "2026-02-01 00:01")
    pay_in(process, organization_id, "1.50")
    assert tick(process, clock, "2026-02-01 23:59") == 0
    clock.now = moment("2026-02-02 00:01") - timedelta(microseconds=1)
    assert process.monthly_fees.run() == 0
    assert tick(process, clock, "2026-02-02 00:01") == 1
    assert charged(process, organization_id) == [("2026-02", "1.50")]


def test_a_process_that_starts_again_tries_at_once(
    installation: Installation, process: Process, clock: SetClock
) -> None:
    organization_id = customer(process, balance="0")
    tick(process, clock, "2026-02-01 00:01")
    pay_in(process, organization_id, "1.50")
    assert installation.process(clock).monthly_fees.run() == 1
    assert charged(process, organization_id) == [("2026-02", "1.50")]


def test_a_later_month_is_frozen_at_its_time_and_waits_for_the_older_one(
    process: Process, clock: SetClock
) -> None:
    organization_id = customer(process, fee="3", balance="1")
    tick(process, clock, "2026-02-28 23:00")
    set_fee(process, organization_id, "1")
    tick(process, clock, "2026-03-01 00:01")
    set_fee(process, organization_id, "9")
    owed = {"2026-02": "3.00", "2026-03": "1.00"}
    assert frozen(process, organization_id) == owed
    tick(process, clock, "2026-03-02 00:01")
    assert charged(process, organization_id) == []
    pay_in(process, organization_id, "2")
    tick(process, clock, "2026-03-03 00:01")
    assert charged(process, organization_id) == [("2026-02", "3.00")]
    pay_in(process, organization_id, "1")
    tick(process, clock, "2026-03-04 00:01")
    assert charged(process, organization_id) == [*owed.items()]
    assert failures(process) == []


def test_a_fee_without_a_wallet_is_owed_until_there_is_one(
    process: Process, clock: SetClock
) -> None:
    organization_id = customer(process, balance="")
    tick(process, clock, "2026-02-01 00:01")
    assert frozen(process, organization_id) == {"2026-02": "1.50"}
    process.accounts.open_wallet(organization_id, process.cause())
    pay_in(process, organization_id, "1.50")
    assert tick(process, clock, "2026-02-02 00:01") == 1
    assert charged(process, organization_id) == [("2026-02", "1.50")]


def test_what_is_owed_is_charged_though_the_organization_was_suspended_since(
    process: Process, clock: SetClock
) -> None:
    organization_id = customer(process, balance="0")
    tick(process, clock, "2026-02-01 00:01")
    set_status(process, organization_id, "suspended")
    pay_in(process, organization_id, "1.50")
    tick(process, clock, "2026-02-02 00:01")
    assert charged(process, organization_id) == [("2026-02", "1.50")]


def test_who_cannot_pay_holds_up_nobody_else(process: Process, clock: SetClock) -> None:
    poor, rich = customer(process, balance="0"), customer(process)
    assert tick(process, clock, "2026-02-01 00:01") == 1
    assert charged(process, poor) == []
    assert charged(process, rich) == [("2026-02", "1.50")]


def test_a_wait_that_lies_beyond_a_day_is_of_a_clock_that_was_set_back(
    process: Process, clock: SetClock
) -> None:
    organization_id = customer(process, balance="0")
    tick(process, clock, "2026-02-20 00:00")
    pay_in(process, organization_id, "1.50")
    assert tick(process, clock, "2026-02-10 00:00") == 1
    assert charged(process, organization_id) == [("2026-02", "1.50")]


def test_a_clock_that_goes_back_a_month_and_forth_again_charges_nothing_twice(
    process: Process, clock: SetClock
) -> None:
    organization_id = customer(process)
    for at in ("2026-03-02", "2026-02-10", "2026-01-20", "2026-03-03"):
        tick(process, clock, at)
    assert charged(process, organization_id) == [("2026-02", "1.50"), ("2026-03", "1.50")]


def test_only_so_many_organizations_have_their_turn_in_one_tick(
    process: Process, clock: SetClock
) -> None:
    organizations = [customer(process) for _ in range(5)]
    clock.now = moment("2026-02-01 00:01")
    turns = [process.monthly_fees.run(organizations_max=2) for _ in range(4)]
    assert turns == [2, 2, 1, 0]
    assert all(charged(process, each) == [("2026-02", "1.50")] for each in organizations)


def test_only_so_much_is_written_in_one_tick_however_many_owe(
    process: Process, clock: SetClock
) -> None:
    for _ in range(3):
        customer(process, fee="0")
        clock.forward(seconds=1)
    organizations = [customer(process) for _ in range(3)]
    clock.now = moment("2026-02-01 00:01")
    turns = [process.monthly_fees.run(steps_max=3) for _ in range(3)]
    assert turns == [2, 1, 0]  # An organization whose fee was frozen also has its charge tried.
    assert all(charged(process, each) == [("2026-02", "1.50")] for each in organizations)


def test_those_who_cannot_pay_leave_their_turns_to_the_others(
    process: Process, clock: SetClock
) -> None:
    for _ in range(3):
        customer(process, balance="0")
        clock.forward(seconds=1)  # The oldest organization has the first turn.
    rich = customer(process)
    clock.now = moment("2026-02-01 00:01")
    assert [process.monthly_fees.run(organizations_max=2) for _ in range(2)] == [0, 1]
    assert charged(process, rich) == [("2026-02", "1.50")]


def test_what_is_settled_is_not_looked_at_again(
    process: Process, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    customer(process)
    customer(process, fee="0")
    tick(process, clock, "2026-02-01 00:01")

    def looked(*_: object) -> None:
        message = "nothing is due"
        raise AssertionError(message)

    for asked in ("history", "find", "follow"):  # The head tells whether it is the same log still.
        monkeypatch.setattr(process.log, asked, looked)
    monkeypatch.setattr(process.views, "reading", looked)
    for _ in range(10):
        clock.forward(days=2)
        assert process.monthly_fees.run() == 0


def test_a_process_that_starts_again_looks_only_at_months_after_the_newest_fee(
    installation: Installation,
    process: Process,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    customer(process)
    tick(process, clock, "2026-05-01 00:01")
    later = installation.process(clock)
    asked: list[str] = []
    active_at = later.link_spans.active_at

    def watched(connection: object, organization_id: UUID, at: object) -> list[UUID]:
        asked.append(f"{at:%Y-%m}")
        return active_at(connection, organization_id, at)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr(later.link_spans, "active_at", watched)
    later.monthly_fees.run()
    tick(later, clock, "2026-06-01 00:01")
    assert asked == ["2026-06"]


def test_what_is_owed_is_told_to_operators_without_a_word_about_the_customer(
    process: Process, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "workers.fees")
    organization_id = customer(process, balance="0")
    tick(process, clock, "2026-02-01 00:01")
    (told,) = caplog.messages
    assert told == (
        f"{organization_id} owes the fee of 2026-02: The wallet balance does not cover this charge:"
        " 1.50 USD is required, 0.00 USD is available."
    )
    pay_in(process, organization_id, "2")
    tick(process, clock, "2026-02-02 00:01")
    assert caplog.messages[1:] == ["monthly fees were charged: 1"]


def test_a_balance_that_covers_it_exactly_is_enough(process: Process, clock: SetClock) -> None:
    organization_id = customer(process, fee="0.000001", balance="0.000001")
    tick(process, clock, "2026-02-01 00:01")
    assert process.accounts.wallet(organization_id).balance_micros == 0
    assert charged(process, organization_id) == [("2026-02", "0.000001")]
