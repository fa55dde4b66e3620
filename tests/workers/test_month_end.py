"""The clock closes each month once, five minutes after its end by every clock that counts."""

from datetime import timedelta

import pytest

from app.bootstrap.container import Container
from domain.finance.month import Month
from domain.log.aggregate import Event
from projections.audit.auditor import check_log
from tests.app.watch.test_metrics import scrape
from tests.installation import Installation, Process, SetClock
from tests.workers.fees import moment
from workers import months

pytestmark = pytest.mark.any_database

MICROSECOND = timedelta(microseconds=1)
DUE = moment("2026-02-01 00:05")


@pytest.fixture
def clock() -> SetClock:
    return SetClock(moment("2026-01-15 12:00"))


@pytest.fixture
def process(installation: Installation, clock: SetClock) -> Process:
    return installation.process(clock)


def events(process: Process) -> list[Event]:
    assert check_log(process.log).ok
    return [each.event for each in process.log.read(0, 1_000)]


def closed(process: Process) -> list[str]:
    return [each.month for each in events(process) if isinstance(each, Month.Closed)]


def test_a_month_is_closed_five_minutes_after_its_end_and_never_again(
    installation: Installation, process: Process, clock: SetClock
) -> None:
    process.organization()
    for now, expected in (
        (moment("2026-01-31 23:59"), []),
        (DUE - MICROSECOND, []),
        (DUE, ["2026-01"]),
        (moment("2026-02-28 12:00"), ["2026-01"]),
    ):
        clock.now = now
        process.month_end.run()
        installation.process(clock).month_end.run()  # One that has just started.
        assert closed(process) == expected


def test_after_a_downtime_the_oldest_month_comes_first_and_a_tick_has_its_bound(
    process: Process, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(months, "MONTHS_MAX", 2)
    process.organization()
    clock.now = moment("2026-06-10")
    assert [process.month_end.run() for _ in range(4)] == [2, 2, 1, 0]
    assert closed(process) == ["2026-01", "2026-02", "2026-03", "2026-04", "2026-05"]


def test_months_that_are_over_for_long_and_not_closed_are_counted(
    process: Process, clock: SetClock
) -> None:
    assert scrape(process, "clock")["months_overdue"] == 0
    process.organization()
    for now, overdue in (("2026-02-01 01:04", 0), ("2026-02-01 01:06", 1), ("2026-03-02", 2)):
        clock.now = moment(now)
        assert scrape(process, "clock")["months_overdue"] == overdue
    process.month_end.run()
    assert scrape(process, "clock")["months_overdue"] == 0


def test_before_the_first_wallet_there_is_nothing_to_close(
    process: Process, clock: SetClock
) -> None:
    for now in ("2026-02-10", "2026-03-10"):
        clock.now = moment(now)
        assert process.month_end.run() == 0
    process.organization()
    clock.now = moment("2026-04-10")
    process.month_end.run()
    assert closed(process) == ["2026-03"]


def test_a_clock_that_is_set_back_closes_nothing_twice(process: Process, clock: SetClock) -> None:
    process.organization()
    clock.now = DUE
    process.month_end.run()
    clock.now = moment("2026-01-20")
    assert process.month_end.run() == 0
    clock.now = DUE
    assert process.month_end.run() == 0
    assert closed(process) == ["2026-01"]


def test_of_two_processes_at_once_one_closes_the_month(
    installation: Installation, process: Process, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.organization()
    clock.now = DUE
    later = SetClock(DUE + MICROSECOND)  # At the same microsecond both write the same bytes.
    other = installation.process(later).month_end
    append = process.log.append

    def append_second(month: Month) -> int:
        monkeypatch.undo()
        other.run()
        return append(month)

    monkeypatch.setattr(process.log, "append", append_second)
    assert process.month_end.run() == 0
    assert closed(process) == ["2026-01"]


def test_the_month_has_to_be_over_by_the_own_clock_and_by_the_databases(
    process: Process, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.organization()
    del process.shared_clock  # That of the container, which asks the database.
    process.shared_clock = Container.shared_clock.__get__(process, Process)
    process.local_clock = clock
    for own, of_the_server, expected in (
        (DUE, DUE - MICROSECOND, []),
        (DUE - MICROSECOND, DUE, []),
        (DUE, DUE, ["2026-01"]),
    ):
        clock.now = own
        monkeypatch.setattr(process.views, "server_time", lambda told=of_the_server: told)
        process.month_end.run()
        assert closed(process) == expected
