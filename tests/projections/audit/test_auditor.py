"""The auditor reads the whole log: it finds nothing where all is right, and says what it read."""

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest

from domain.finance.statement import Month
from domain.log.discontinuity import Discontinuity
from projections.audit.auditor import check_log
from projections.audit.report import FAILURES_MAX
from tests.installation import Installation, Process, SetClock, numbers, sqlite_only
from tests.projections.forgery import Forger, InDatabase
from tests.projections.histories import write_row
from tests.projections.looking import register, tables
from tests.support.erasing import erase_months


def test_an_event_that_cannot_be_decoded_is_a_failure_at_its_position(process: Process) -> None:
    register(process, 3)
    position = write_row(process, uuid4().hex, 1, "deposit.made", b"\xff")
    register(process, 1)
    report = check_log(process.log)
    assert [failure.position for failure in report.failures] == [position]
    assert (report.events, report.position) == (3, 3)


def test_only_so_many_failures_are_listed(process: Process) -> None:
    forger = Forger(InDatabase(process))
    for _ in range(FAILURES_MAX + 5):
        charged = forger.charge_for(forger.lookup(1))
        forger.write(charged)
    report = check_log(process.log)
    assert len(report.failures) == FAILURES_MAX
    assert report.events == process.log.head()
    assert not report.ok


def test_read_models_of_a_broken_log_are_not_looked_at(process: Process) -> None:
    forger = Forger(InDatabase(process))
    forger.write(forger.charge_for(forger.lookup()))
    with process.views.writing() as connection:
        connection.execute(process.positions.rows.delete())
    before = tables(process)
    report = process.audit()
    assert len(report.failures) == 1
    assert tables(process) == before


def lose(process: Process) -> None:
    server = Discontinuity.notice("server-2", process.log.head(), 10**6, process.cause())
    process.log.append(server)


def set_the_clock_back(process: Process) -> None:
    clock = process.clock
    clock.now -= timedelta(hours=3)
    process.look_up(process.organization("1.00", "Yesterday"), numbers(1)[0])
    clock.now += timedelta(hours=3)


def charge_late(process: Process) -> None:
    organization = process.organization("5.00", "Late")
    process.log.append(Month.close("2026-02", process.cause()))
    process.create_job(organization, numbers(2))


def erase(process: Process) -> None:
    erase_months(process.vault, "2026-04")
    clock = process.clock
    clock.forward(days=31)  # Into a month with a key.


@pytest.mark.parametrize("happening", [lose, set_the_clock_back, charge_late, erase])
@sqlite_only("the auditor reads events, whatever holds them")
def test_what_is_honest_is_not_accused(
    installation: Installation, happening: Callable[[Process], None]
) -> None:
    process = installation.process(SetClock())
    organization = process.organization("5.00")
    process.look_up(organization, numbers(1)[0])
    clock = process.clock
    clock.forward(minutes=2)
    process.checkpoints.make()
    happening(process)
    process.look_up(organization, numbers(1)[0])
    clock.forward(minutes=2)
    process.checkpoints.make()
    report = check_log(process.log, witnesses=process.witnesses())
    assert report.failures == []
    assert report.leaves == report.events
