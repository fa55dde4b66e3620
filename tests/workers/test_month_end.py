"""The clock closes each month once, five minutes after its end by every clock that counts."""

from datetime import timedelta
from pathlib import Path

import pytest

from app.bootstrap.container import Container
from app.processes import runtime
from domain.cause import Cause, utc_now
from domain.errors import NotPossible
from domain.finance.statement import Month
from domain.log.aggregate import Event
from projections.audit.auditor import check_log
from projections.stores.notes import Notes
from tests.app.watch.test_metrics import scrape
from tests.installation import Installation, Process, SetClock, wait_until
from tests.projections.looking import places
from tests.workers.fees import clock_at, customer, frozen, moment
from workers import months

MICROSECOND, APART = timedelta(microseconds=1), timedelta(seconds=2.1)
DUE = moment("2026-02-01 00:05")
clock = clock_at("2026-01-15 12:00")


def events(process: Process) -> list[Event]:
    assert check_log(process.log).ok
    return [each.event for each in process.log.read(0, 1_000)]


def closed(process: Process) -> list[str]:
    return [each.month for each in events(process) if isinstance(each, Month.Closed)]


def test_a_month_is_closed_five_minutes_after_its_end_and_never_again(
    installation: Installation, process: Process
) -> None:
    process.organization()
    for now, expected in (
        (moment("2026-01-31 23:59"), []),
        (DUE - MICROSECOND, []),
        (DUE, ["2026-01"]),
        (moment("2026-02-28 12:00"), ["2026-01"]),
    ):
        process.time.now = now
        process.month_end.run()
        installation.process(process.time).month_end.run()  # One that has just started.
        assert closed(process) == expected


def test_after_a_downtime_the_oldest_month_comes_first_and_a_tick_has_its_bound(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(months, "MONTHS_MAX", 2)
    process.organization()
    process.time.now = moment("2026-06-10")
    assert [process.month_end.run() for _ in range(4)] == [2, 2, 1, 0]
    assert closed(process) == ["2026-01", "2026-02", "2026-03", "2026-04", "2026-05"]


def test_months_that_are_over_for_long_and_not_closed_are_counted(process: Process) -> None:
    assert scrape(process, "clock")["months_overdue"] == 0
    process.organization()
    for now, overdue in (("2026-02-01 01:04", 0), ("2026-02-01 01:06", 1), ("2026-03-02", 2)):
        process.time.now = moment(now)
        assert scrape(process, "clock")["months_overdue"] == overdue
    process.month_end.run()
    assert scrape(process, "clock")["months_overdue"] == 0


def test_before_the_first_wallet_there_is_nothing_to_close_and_no_event_is_looked_at_twice(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.organization("")
    log, looks = process.log, list[dict[str, int]]()
    first, head = log.first, log.head()
    monkeypatch.setattr(log, "first", lambda *of, **how: looks.append(how) or first(*of, **how))
    for now in ("2026-02-10", "2026-03-10"):
        process.time.now = moment(now)
        assert process.month_end.run() == 0
    assert looks == [{"after": 0}, {"after": head}]
    process.organization()
    process.time.now = moment("2026-04-10")
    process.month_end.run()
    assert closed(process) == ["2026-03"]


def test_a_clock_that_is_set_back_closes_nothing_twice(process: Process) -> None:
    process.organization()
    for now, count in ((DUE, 1), (moment("2026-01-20"), 0), (DUE, 0)):
        process.time.now = now
        assert process.month_end.run() == count
    assert closed(process) == ["2026-01"]


def test_of_two_processes_at_once_one_closes_the_month(
    installation: Installation, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.organization()
    process.time.now = DUE
    process.cut_off.live()
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


def test_the_month_is_over_by_the_databases_clock_if_the_own_one_agrees(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.organization()
    del process.shared_clock  # That of the container, which asks the database.
    process.shared_clock = Container.shared_clock.__get__(process, Process)
    process.gate.query = lambda: process.views.server_time()  # noqa: PLW0108  # It is patched.
    for own, of_the_server, expected in (
        (DUE, DUE - MICROSECOND, []),
        (DUE + APART, DUE, []),
        (DUE - APART, DUE, []),
        (DUE - timedelta(seconds=1), DUE, ["2026-01"]),
    ):
        process.time.now = own
        monkeypatch.setattr(process.views, "server_time", lambda told=of_the_server: told)
        process.month_end.run()
        assert closed(process) == expected


def test_a_service_whose_clock_is_ahead_closes_and_charges_nothing(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its followers leave signs of life by that clock at once; they prove nothing."""
    right = installation.process()
    registered = customer(right)
    wrong = installation.process(lambda: utc_now() + timedelta(days=32))
    # As in a file, and where both run on one machine.
    wrong.shared_clock, wrong.gate.query = wrong.clock, lambda: None
    monkeypatch.setattr(runtime, "FOLLOW_FIRST_S", 1.0)  # After the first rounds of the clock.
    running = runtime.Runtime(wrong)
    running.start()
    try:
        wait_until(lambda: places(right).get("audit_tree") == right.log.head())
    finally:
        running.stop()
    assert closed(right) == []
    assert frozen(right, registered) == {}


@pytest.fixture
def jumped(process: Process) -> SetClock:
    """A clock that has jumped ahead over two ends of months; returned is the time that passes."""
    passed = SetClock(process.time.now)
    process.monotonic = lambda: passed().timestamp()
    process.organization()
    process.cut_off.live()
    process.time.now = moment("2026-03-20")
    for _ in range(2):
        process.cut_off.live()
        process.organization()  # It is dated by this clock.
        assert process.month_end.run() == 0
        assert len(process.month_end.overdue()) == 2
    return passed


def test_a_clock_that_has_jumped_ahead_is_believed_after_a_steady_day(
    process: Process, jumped: SetClock
) -> None:
    for each in (process.time, jumped):
        each.forward(hours=24)
    assert process.month_end.run() == 2


def test_a_clock_that_has_jumped_ahead_and_back_closes_at_the_right_time(
    process: Process, jumped: SetClock
) -> None:
    process.time.now = jumped()
    process.cut_off.live()
    assert process.month_end.run() == 0
    for each in (process.time, jumped):
        each.now = DUE
    assert process.month_end.run() == 1
    assert closed(process) == ["2026-01"]


def test_a_clock_that_has_jumped_ahead_is_believed_once_an_operator_closes_a_month(
    installation: Installation, process: Process, jumped: SetClock
) -> None:
    assert jumped() < process.time()
    other, cause = installation.process(process.time), Cause(process.time(), "by hand", "os:ann")
    with pytest.MonkeyPatch.context() as killed:
        killed.setattr(Notes, "replace", lambda *_: Path("/gone").stat())
        with pytest.raises(FileNotFoundError):
            other.month_end.close("2026-01", cause)
    other.month_end.close("2026-01", cause)
    assert process.month_end.run() == 1
    assert closed(process) == ["2026-01", "2026-02"]
    actors = [each.actor for each in events(process) if isinstance(each, Month.Closed)]
    assert actors == ["os:ann", None]


@pytest.mark.parametrize(
    ("month", "why"),
    [
        ("2025-12", "before the first wallet"),
        ("2026-01", "is closed"),
        ("2026-03", "2026-02 comes first"),
        ("2026-04", "has not ended by the clock of the database"),
    ],
)
def test_an_operator_closes_only_the_next_month_that_has_ended(
    process: Process, month: str, why: str
) -> None:
    process.organization()
    process.time.now = DUE
    process.month_end.run()
    process.time.now = moment("2026-04-30 23:59")
    with pytest.raises(NotPossible, match=why):
        process.month_end.close(month, process.cause())
    assert closed(process) == ["2026-01"]
