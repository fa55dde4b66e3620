"""Every night the whole log is audited, a little at a time, and what was found can be seen."""

import logging
from math import isnan

import pytest

from app.processes.doctor import examine
from tests.app.watch.test_metrics import scrape
from tests.installation import Installation, Process, SetClock, sqlite_only
from tests.projections.looking import register
from workers import nightly_audit

pytestmark = sqlite_only("the audit reads events, whatever holds them")


@pytest.fixture
def process(installation: Installation, clock: SetClock) -> Process:
    process = installation.process(clock)
    register(process, 5)
    process.checkpoints.follow()
    return process


def audited(process: Process) -> int | None:
    note = process.notes.newest("audit")
    return None if note is None else process.observed.audit()["audit_failures"]


def test_it_runs_once_a_night_from_two_o_clock_on(process: Process) -> None:
    process.time.now = process.time.now.replace(hour=1, minute=59)
    assert process.nightly_audit.run() is False
    assert audited(process) is None
    process.time.forward(minutes=1)
    process.nightly_audit.run()
    assert audited(process) == 0
    begun: list[int] = []
    process.nightly_audit.witnesses = lambda: begun.append(1) or []  # type: ignore[func-returns-value]  # It must not.
    for hours in (1, 20):
        process.time.forward(hours=hours)
        process.nightly_audit.run()
    assert begun == []


def test_it_goes_on_with_the_next_slice(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, make = list[None](), process.nightly_audit.witnesses
    process.nightly_audit.witnesses = lambda: begun.append(None) or make()
    monkeypatch.setattr(nightly_audit, "SLICE_S", -1.0)
    assert (process.nightly_audit.run(), audited(process)) == (True, None)
    monkeypatch.setattr(nightly_audit, "SLICE_S", 60.0)
    assert process.nightly_audit.run() is False
    assert (audited(process), len(begun)) == (0, 1)


def test_what_it_finds_is_logged_measured_and_said(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    with process.databases.keys.writing() as connection:
        connection.exec_driver_sql("UPDATE stored_events SET topic = 'x.y' WHERE rowid = 2")
    process.time.forward(hours=1)
    with caplog.at_level(logging.CRITICAL):
        process.nightly_audit.run()
    assert "audit: position 2" in caplog.text
    assert audited(process) == 2
    process.time.forward(hours=1)
    shown = scrape(process, "clock")
    assert (shown["audit_failures"], shown["audit_age_seconds"]) == (2, 3600)
    assert isnan(shown["checkpoint_outside_age_seconds"])
    assert "audit" in {each.check for each in examine(process)}


def test_the_age_of_the_proof_outside_is_measured_where_there_is_a_sink(
    installation: Installation, process: Process
) -> None:
    installation.environment["CHECKPOINT_SINK"] = str(installation.directory)
    process = installation.process(process.time)
    assert process.observed.audit()["checkpoint_outside_age_seconds"] == 0.0
    process.time.forward(hours=1)
    process.checkpoints.run()
    process.time.forward(hours=1)
    assert process.observed.audit()["checkpoint_outside_age_seconds"] == 3600
    assert "checkpoints" in {each.check for each in examine(process) if each.severity == "fault"}
    process.time.forward(hours=1)
    process.checkpoints.make()
    process.checkpoints.deliver()
    assert process.observed.audit()["checkpoint_outside_age_seconds"] == 0.0
    assert "checkpoints" not in {each.check for each in examine(process)}


def test_what_was_never_done_is_as_old_as_the_log(
    installation: Installation, clock: SetClock
) -> None:
    installation.environment["CHECKPOINT_SINK"] = str(installation.directory)
    process = installation.process(clock)
    names = ("audit_age_seconds", "checkpoint_outside_age_seconds", "backup_age_seconds")
    assert [scrape(process, "clock")[name] for name in names] == [0, 0, 0]
    register(process, 1)
    clock.forward(days=8)
    assert [scrape(process, "clock")[name] for name in names] == [8 * 86_400] * 3
    process.notes.replace("backup", "1", clock())
    assert scrape(process, "clock")["backup_age_seconds"] == 0
