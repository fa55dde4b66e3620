"""Errors, outages and stopped read models hold up what they concern, and only for a while."""

import logging
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from app.processes.runtime import Runtime
from domain.accounts.monthly_fee import MonthlyFee, monthly_fee_id
from domain.cause import utc_now
from domain.errors import ServiceUnavailable
from tests.installation import Installation, Process, SetClock, postgresql_only, wait_until
from tests.projections.looking import place_of
from tests.workers.fees import activate, charged, customer, fees, frozen, moment
from tests.workers.meanwhile import around, failing
from workers.fees import FAILURES_MAX, PAUSE

FEBRUARY = [("2026-02", "1.50")]


@pytest.fixture
def clock() -> SetClock:
    return SetClock(moment("2026-01-15 12:00"))


@pytest.fixture
def process(installation: Installation, clock: SetClock) -> Process:
    return installation.process(clock)


@pytest.fixture
def organization_id(process: Process, clock: SetClock) -> UUID:
    """An organization that owes 1.50 for February, which has begun."""
    registered = customer(process)
    clock.now = moment("2026-02-01 00:01")
    return registered


@postgresql_only("a file has no clock of its own")
@pytest.mark.parametrize("ahead", [timedelta(days=40), timedelta(days=400)])
def test_a_worker_whose_clock_is_ahead_charges_no_month_early(
    installation: Installation, ahead: timedelta
) -> None:
    """The server's clock, which all share, has not seen that month begin."""
    right = installation.process()
    registered = customer(right)
    wrong = installation.process(lambda: utc_now() + ahead)
    assert wrong.monthly_fees.run() == 0
    assert frozen(right, registered) == {}


def test_a_server_whose_clock_is_ahead_has_nobody_charge_early(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = installation.process()
    registered = customer(process)
    told = utc_now() + timedelta(days=40)
    monkeypatch.setattr(process.views, "server_time", lambda: told)
    assert process.monthly_fees.run() == 0
    assert frozen(process, registered) == {}


def test_an_unknown_outcome_is_settled_by_the_log(
    process: Process, organization_id: UUID, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    around(monkeypatch, process, "committer.commit", after=failing(ServiceUnavailable()))
    process.monthly_fees.run()
    clock.now += PAUSE
    assert process.monthly_fees.run() == 0
    assert charged(process, organization_id) == FEBRUARY


def test_the_error_of_one_organization_stops_no_other_and_is_not_the_end(
    process: Process,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second, third = (customer(process) for _ in range(3))
    clock.now = moment("2026-02-01 00:01")
    history, broken = process.log.history, [second]

    def fragile(stream_id: UUID) -> object:
        if stream_id in broken:
            message = "a bug"
            raise RuntimeError(message)
        return history(stream_id)

    monkeypatch.setattr(process.log, "history", fragile)
    assert process.monthly_fees.run() == 2
    assert charged(process, first) == charged(process, third) == FEBRUARY
    assert caplog.messages == [f"the monthly fee of {second} failed"]
    broken.clear()
    clock.now += PAUSE - timedelta(seconds=1)
    assert process.monthly_fees.run() == 0
    clock.forward(seconds=1)
    assert process.monthly_fees.run() == 1
    assert charged(process, second) == FEBRUARY


def test_errors_that_are_not_in_a_row_do_not_end_the_tick(
    process: Process, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, sound = set(), []
    for _ in range(FAILURES_MAX + 1):
        broken.add(customer(process))
        clock.forward(seconds=1)  # The oldest organization has the first turn.
        sound.append(customer(process))
        clock.forward(seconds=1)
    clock.now = moment("2026-02-01 00:01")
    history = process.log.history

    def fragile(stream_id: UUID) -> object:
        if stream_id in broken:
            raise ServiceUnavailable
        return history(stream_id)

    monkeypatch.setattr(process.log, "history", fragile)
    assert process.monthly_fees.run() == len(sound)


def test_a_fee_of_nobody_holds_up_nobody(
    process: Process, organization_id: UUID, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    fee = MonthlyFee.fall_due(
        uuid4(), "2026-01", process.cause(), fee_micros=1, link_ids=[uuid4()], currency="USD"
    )
    process.log.append(fee)
    assert process.monthly_fees.run() == 1
    clock.now = moment("2026-03-01 00:01")
    assert process.monthly_fees.run() == 1
    assert frozen(process, fee.due.organization_id) == {"2026-01": "0.000001"}
    assert list(frozen(process, organization_id)) == ["2026-02", "2026-03"]
    assert caplog.messages == []  # It is owed, and no error.


def test_a_log_that_is_gone_is_not_asked_for_every_organization(
    process: Process, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    organizations = [customer(process) for _ in range(FAILURES_MAX + 2)]
    clock.now = moment("2026-02-01 00:01")
    asked: list[UUID] = []

    def gone(stream_id: UUID) -> None:
        asked.append(stream_id)
        raise ServiceUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(process.log, "history", gone)
        process.monthly_fees.run()
    assert len(asked) == FAILURES_MAX
    assert process.monthly_fees.run() == 2
    clock.now += PAUSE
    assert process.monthly_fees.run() == FAILURES_MAX
    assert all(charged(process, each) == FEBRUARY for each in organizations)


@pytest.mark.parametrize("part", ["organizations", "link_spans", "monthly_fees"])
def test_nothing_is_frozen_while_a_read_model_that_is_needed_has_stopped(
    process: Process,
    organization_id: UUID,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    part: str,
) -> None:
    def broken(*_: object) -> None:
        message = "a bug of this handler"
        raise RuntimeError(message)

    caplog.set_level(logging.WARNING, "workers.fees")
    with monkeypatch.context() as patch:
        model = next(each for each in process.models if each.name == part)
        patch.setattr(model, "follow", broken)
        activate(process, organization_id)
        process.projector.catch_up()
        process.monthly_fees.run()
    assert caplog.messages[-1] == "monthly fees of 2026-02 wait for read models that stopped"
    fee_id = monthly_fee_id(organization_id, "2026-02")
    assert process.log.find(MonthlyFee, fee_id) is None

    def goes_on() -> bool:
        process.projector.step()  # It tries a read model that stopped again by and by.
        return place_of(process, part).failure is None

    wait_until(goes_on)
    assert process.monthly_fees.run() == 1
    assert charged(process, organization_id) == FEBRUARY


@pytest.mark.slow
def test_a_process_charges_at_its_start_what_fell_due_while_none_ran(
    installation: Installation, process: Process, organization_id: UUID, clock: SetClock
) -> None:
    clock.now = moment("2026-03-20")
    runtime = Runtime(installation.process(clock))
    runtime.start()
    try:
        wait_until(lambda: len(charged(process, organization_id)) == 2)
    finally:
        runtime.stop()
    assert [fee.month for fee in fees(process, organization_id)] == ["2026-02", "2026-03"]
