"""`doctor --capacity`: what is used, how fast it grows, and when it is full."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from app.processes import capacity as capacities
from app.processes.capacity import SOON, Capacity, Use, capacity
from tests.installation import Installation, Process, SetClock, postgresql_only
from tests.projections.histories import leave_out
from tests.servers.running import free_port

DAY = timedelta(days=1)


@pytest.fixture
def aged(installation: Installation, clock: SetClock) -> Process:
    """Ten days, in each of which an organization is registered; the newest ten minutes ago."""
    process = installation.process(clock)
    for number in range(10):
        process.organization(name=f"Acme {number}")
        clock.forward(days=1)
    clock.forward(days=-1, minutes=10)
    process.projector.catch_up()
    return process


def use(found: Capacity, what: str) -> Use:
    (one,) = (each for each in found.uses if each.what == what)
    return one


def test_the_pace_is_that_of_the_last_seven_days(aged: Process, clock: SetClock) -> None:
    found = capacity(aged)
    assert found.pace is not None
    since = aged.log.position_before(clock.now - 7 * DAY)
    assert found.pace.days == 7
    assert found.pace.events_a_day == round((aged.log.head() - since) / 7)
    assert 0 < since < aged.log.head()
    of_an_event = use(found, "database").used / aged.log.head()
    assert found.pace.bytes_a_day == pytest.approx(of_an_event * found.pace.events_a_day, rel=0.1)


@pytest.mark.each_database
def test_a_position_is_found_by_its_time_and_all_tables_are_counted(aged: Process) -> None:
    events = aged.log.read(0, 1000)
    for each in events:
        earlier = [one.position for one in events if one.event.timestamp < each.event.timestamp]
        assert aged.log.position_before(each.event.timestamp) == max(earlier, default=0)
    told = use(capacity(aged), "database").told
    parts = re.findall(r"(log|read models|stores) ([0-9.]+) MB", told)
    assert [name for name, _ in parts] == ["log", "read models", "stores"]
    assert all(float(size) > 0 for _, size in parts)


def test_a_disk_that_is_full_soon_is_no_longer_enough(aged: Process, clock: SetClock) -> None:
    used = use(capacity(aged), "database").used
    a_day = capacity(aged).pace
    assert a_day is not None
    for days, is_enough in ((SOON.days + 2, True), (SOON.days - 2, False)):
        found = capacity(aged, used + days * a_day.bytes_a_day)
        full_at = use(found, "disk").full_at
        assert full_at is not None
        assert abs(full_at - clock.now - days * DAY) < DAY
        assert found.is_enough(clock.now) is is_enough
    full = use(capacity(aged, 1), "disk")
    assert full.full_at == clock.now


@postgresql_only("a file has no connections")
def test_connections_that_run_short_are_not_enough(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = capacity(process)
    connections = use(found, "connections")
    assert 0 < connections.used < (connections.of or 0)
    assert found.is_enough(process.clock())
    monkeypatch.setattr(capacities, "USED_MAX", 0.0)
    assert not found.is_enough(process.clock())


def test_the_busiest_hour_is_named(installation: Installation, clock: SetClock) -> None:
    process = installation.process(clock)
    organization_id = process.organization()
    for count in (1, 3, 2):
        for _ in range(count):
            process.look_up(organization_id, "+14155550100")
        clock.forward(hours=1)
    process.projector.catch_up()
    busiest = use(capacity(process), "busiest hour")
    assert busiest.used == 3
    assert "2026-03-01 13:00 UTC" in busiest.told


@pytest.mark.each_database
def test_a_promotion_does_not_hide_the_pace(aged: Process) -> None:
    """It leaves out a thousand million positions, which hold no events."""
    before = capacity(aged)
    leave_out(aged)
    aged.organization(name="Acme after")
    aged.projector.catch_up()
    found, events = capacity(aged), len(aged.log.stored(0, 1_000))
    assert before.pace is not None
    assert found.pace is not None
    assert before.pace.events_a_day < found.pace.events_a_day < before.pace.events_a_day + 2
    assert found.pace.bytes_a_day > 100 * found.pace.events_a_day
    a_event = use(found, "database").used // events
    assert f"; {a_event:,} bytes an event" in use(found, "database").told


def test_log_lines_of_requests_are_counted_and_with_the_broker_away_the_rest_is_said(
    aged: Process,
) -> None:
    organization_id = aged.organization()
    for _ in range(7):
        aged.look_up(organization_id, "+14155550100")
    aged.projector.catch_up()
    away = f"amqp://127.0.0.1:{free_port()}"
    aged.settings = replace(aged.settings, broker_url=away)
    found = capacity(aged, 10**12)
    assert use(found, "log lines").used == capacities.LINE_BYTES
    assert use(found, "queues").told == "the broker cannot be reached"
    assert use(found, "disk").full_at is not None
    assert use(found, "database").used
