"""A clock that is over two seconds off the database's is doubted until both agree again."""

import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.bootstrap import gate
from app.bootstrap.gate import CHECK_S, WAS_SET, Gate
from domain.cause import utc_now
from domain.errors import ClockOff
from tests.installation import Installation, sqlite_only
from tests.log_lines import said_by

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BEHIND = "the clock of this machine is 3600.0 s behind the database's"
AHEAD = "the clock of this machine is 3600.0 s ahead of the database's"


class Host:
    """A machine and its database, each with a clock, and a way between them that takes time."""

    def __init__(self, off_s: float = 0.0, way_s: float = 0.0) -> None:
        self.passed_s = 0.0
        self.set_by_s = 0.0  # What somebody has set the clock of the machine by.
        self.way_s = way_s
        self.off_s = off_s
        self.is_away = False
        self.asked = 0
        views = SimpleNamespace(server_time=self.answer)
        self.check = Gate(cast("Any", SimpleNamespace(clock=self.local, views=views)))
        self.check.monotonic = lambda: self.passed_s

    def local(self) -> datetime:
        return START + timedelta(seconds=self.passed_s + self.set_by_s)

    def answer(self) -> datetime:
        self.asked += 1
        if self.is_away:
            raise ConnectionError
        self.passed_s += self.way_s / 2
        answer = START + timedelta(seconds=self.passed_s + self.off_s)
        self.passed_s += self.way_s / 2
        return answer


@pytest.mark.parametrize(
    ("off_s", "reason"), [(3600, BEHIND), (-3600, AHEAD), (2, None), (-2, None), (0, None)]
)
def test_two_seconds_are_allowed(off_s: float, reason: str | None) -> None:
    host = Host(off_s)
    assert host.check.reason() is None, "nothing was compared yet"
    assert host.check.check() == host.check.reason() == reason
    assert host.check.off_s == off_s
    assert host.check.is_off() == (reason is not None)


def test_who_must_not_go_on_is_refused() -> None:
    host = Host(3600)
    assert host.check.now() == host.local()
    with pytest.raises(ClockOff, match=BEHIND):
        host.check.require()
    host.off_s = 0
    assert host.check.require() == host.local()


@pytest.mark.parametrize(("off_s", "found"), [(0, 0), (1, 0), (2.5, 1.5), (-2.5, -1.5), (5, 4)])
def test_a_slow_answer_makes_no_clock_wrong(off_s: float, found: float) -> None:
    host = Host(off_s, way_s=2.0)
    host.check.check()
    assert host.check.off_s == found


def test_it_is_compared_every_ten_seconds() -> None:
    host = Host()
    for passed_s, asked in ((0, 1), (CHECK_S - 1, 1), (1, 2), (1, 2)):
        host.passed_s += passed_s
        host.check.check_if_due()
        assert host.asked == asked


@pytest.mark.parametrize(
    ("set_by_s", "off_s", "reason"), [(3600, 0, AHEAD), (-3600, 0, BEHIND), (3600, 3600, None)]
)
def test_a_clock_that_was_set_is_doubted_at_once_and_compared_a_second_later(
    set_by_s: int, off_s: int, reason: str | None
) -> None:
    host = Host()
    host.check.check()
    host.set_by_s, host.off_s = set_by_s, off_s
    assert host.check.reason() == WAS_SET
    host.check.check_if_due()
    assert host.check.reason() == reason
    host.set_by_s = host.off_s = 0
    host.check.check_if_due()
    assert (host.check.reason(), host.asked) == (None, 3)


@pytest.mark.parametrize("off_s", [0, 3600])
def test_while_the_database_is_away_the_last_comparison_counts(off_s: float) -> None:
    host = Host(off_s)
    reason = host.check.check()
    host.is_away = True
    host.passed_s += CHECK_S
    host.check.check_if_due()
    assert (host.asked, host.check.reason()) == (2, reason)


def test_a_clock_that_is_set_amid_a_comparison_is_compared_anew() -> None:
    host = Host()

    def set_meanwhile() -> datetime:
        answer = host.answer()
        host.set_by_s = 3600.0
        return answer

    host.check.query = set_meanwhile
    assert host.check.check() is None
    host.check.check_if_due()
    assert host.check.reason() == AHEAD


def test_each_change_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, gate.__name__)
    host = Host(3600)
    for off_s in (3600, 3600, 0, 0):
        host.off_s = off_s
        host.passed_s += CHECK_S
        host.check.check_if_due()
    assert said_by(caplog, gate.__name__) == [
        f"{BEHIND}: this process does no work until it is right",
        "the clock of this machine is right again: this process works again",
    ]


@sqlite_only("a file has no clock")
def test_a_file_has_the_clock_of_its_machine(installation: Installation) -> None:
    process = installation.process(lambda: utc_now() - timedelta(hours=1))
    assert process.gate.check() is None
