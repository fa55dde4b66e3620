"""Every process tells the database's time, whatever the clock of its machine says."""

import logging
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import pytest

from app.watch import database_clock
from app.watch.database_clock import MEASURE_S, RETRY_S, DatabaseClock
from domain.cause import utc_now
from domain.errors import ProvisioningError
from tests.domain.buying import Buyer
from tests.installation import Installation, postgresql_only, sqlite_only, wait_until
from tests.log_lines import said_by

BEHIND = timedelta(seconds=28)
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def behind() -> datetime:
    return utc_now() - BEHIND


class Host:
    """A machine and its database, each with a clock, and a way between them that takes time."""

    def __init__(self, off_s: float = 0.0, way_s: float = 0.0) -> None:
        self.passed_s = 0.0
        self.set_by_s = 0.0  # What somebody has set the clock of the machine by.
        self.way_s = way_s
        self.off_s = off_s
        self.is_away = False
        self.asked = 0
        self.server = "one"
        self.clock = DatabaseClock(
            self.local, self.told, lambda: self.passed_s, lambda: self.server
        )

    def local(self) -> datetime:
        return START + timedelta(seconds=self.passed_s + self.set_by_s)

    @property
    def true(self) -> datetime:
        """What the clock of the database says."""
        return START + timedelta(seconds=self.passed_s + self.off_s)

    def told(self) -> datetime:
        self.asked += 1
        if self.is_away:
            raise ConnectionError
        self.passed_s += self.way_s / 2
        answer = self.true
        self.passed_s += self.way_s / 2
        return answer


@pytest.mark.parametrize("off_s", [28.0, -28.0, 0.4])
def test_a_host_that_is_off_tells_the_time_of_the_database(off_s: float) -> None:
    host = Host(off_s)
    host.clock.measure()
    assert host.clock() == host.true
    assert host.clock.offset_s == off_s


@pytest.mark.parametrize("set_by_s", [7_200.0, -7_200.0])
def test_a_clock_that_has_just_been_set_misleads_nobody_before_it_is_measured(
    set_by_s: float,
) -> None:
    host = Host(off_s=28.0)
    host.clock.measure()
    host.passed_s, host.set_by_s = 10.0, set_by_s
    assert host.clock() == host.true
    host.clock.measure_if_due()
    assert (host.clock(), host.clock.offset_s) == (host.true, 28.0 - set_by_s)


def test_on_one_machine_nothing_is_added_however_long_the_way(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host = Host(way_s=2.0)
    for _ in range(3):
        host.clock.measure()
    assert host.clock.offset_s == 0.0
    assert said_by(caplog, database_clock.__name__) == []


def test_a_measurement_is_as_good_as_the_way_is_short() -> None:
    host = Host(28.0, way_s=0.2)
    host.clock.measure()
    assert abs(host.clock.offset_s - 28.0) <= 0.1


def test_a_server_that_takes_over_is_asked_for_its_time_at_once() -> None:
    host = Host()
    host.clock.measure()
    host.server, host.off_s = "two", 28.0
    host.clock.measure_if_due()
    assert host.clock.offset_s == 28.0
    host.clock.measure_if_due()
    assert host.asked == 2


def test_while_the_database_is_away_the_last_offset_holds() -> None:
    host = Host(28.0)
    host.clock.measure()
    host.is_away = True
    host.clock.measure()
    assert host.clock() == host.true
    host.passed_s += RETRY_S
    host.is_away, host.off_s = False, 5.0
    host.clock.measure_if_due()
    assert host.clock() == host.true


def test_it_is_measured_each_minute_and_when_the_clock_was_set() -> None:
    host = Host(28.0)
    host.clock.measure_if_due()
    host.passed_s += MEASURE_S - 1
    host.clock.measure_if_due()
    assert host.asked == 1
    host.passed_s += 1
    host.clock.measure_if_due()
    assert host.asked == 2
    for hours in (2, -2):
        host.set_by_s += hours * 3600
        host.clock.measure_if_due()
        assert host.clock() == host.true
    assert host.asked == 4


def test_a_clock_that_is_set_amid_a_measurement_is_measured_anew() -> None:
    host = Host()

    def set_meanwhile() -> datetime:
        host.set_by_s = 3600.0
        return host.true

    clock = DatabaseClock(host.local, set_meanwhile, lambda: host.passed_s)
    clock.measure()
    assert clock.offset_s == 0.0
    host.passed_s += RETRY_S
    clock.measure_if_due()
    assert clock.offset_s == -3600.0


def test_who_is_far_off_is_told_once_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, database_clock.__name__)
    host = Host(28.0)
    for _ in range(3):
        host.clock.measure()
    host.off_s = 0.0
    for _ in range(2):
        host.clock.measure()
    assert said_by(caplog, database_clock.__name__) == [
        "the clock of this machine is -28.0 s off the database's, which is used instead",
        "the clock of this machine agrees with the database's again",
    ]


@sqlite_only("a file has no clock")
def test_a_file_has_the_clock_of_its_machine(installation: Installation) -> None:
    process = installation.process(behind)
    process.database_clock.measure()
    assert process.database_clock.offset_s == 0.0


@postgresql_only("its server has a clock")
def test_a_link_that_is_asked_for_by_a_host_that_is_behind_is_made(
    installation: Installation,
) -> None:
    buyer = Buyer(installation, deadline_s=15.0)
    try:
        buyer.clock = behind
        web = buyer.open()
        buyer.hire()
        plan_id = buyer.sell()
        with pytest.raises(ProvisioningError):  # Its deadline is over before the worker begins.
            buyer.create(plan_id, process=web)
        web.database_clock.measure()
        assert abs(web.database_clock.offset_s - BEHIND.total_seconds()) < 1
        link, _ = buyer.create(plan_id, process=web)
        assert link.is_visible
    finally:
        buyer.close()


@postgresql_only("its server has a clock")
def test_the_time_is_kept_by_a_thread_of_its_own(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.watch.database_clock.LOOK_S", 0.001)
    process = installation.process(behind)
    stop = Event()
    thread = Thread(target=process.database_clock.keep, args=(stop,))
    thread.start()
    wait_until(lambda: abs(process.clock() - utc_now()) < timedelta(seconds=1))
    stop.set()
    thread.join()
