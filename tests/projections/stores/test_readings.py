"""What the network last told: the newest of each kind, for every process, and never in the way."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import get_ident
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import inspect

from app.processes.migrate import migrate
from domain.links.network import AddonUsage, NetworkReading, NetworkStatus, ServingNetwork, Usage
from projections.engine.database import Database
from tests.installation import Installation, Process

pytestmark = pytest.mark.each_database

ORGANIZATION = UUID("0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60")
LINK = UUID("3d7a5c1e-4b2f-5e8d-9a6c-0f1e2d3c4b5a")
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(microseconds=1)
MSISDN = "+883510012345678"


def usage(at: datetime = NOON, used_mb: float = 12.125, msisdn: str | None = MSISDN) -> Usage:
    addon = AddonUsage("addon-1", "eu-5gb-30d", used_mb, 5000.0 - used_mb, NOON)
    return Usage("active", [addon], at, installed_at=NOON, first_used_at=None, msisdn=msisdn)


def status(at: datetime = NOON, *, connected: bool = True) -> NetworkStatus:
    network = ServingNetwork("DE", "Acme", "262", "01", "4G") if connected else None
    return NetworkStatus("active", connected, network, NOON, at)


def test_a_reading_is_kept_whole_for_every_process(
    installation: Installation, process: Process
) -> None:
    other = uuid4()
    process.readings.save_usage(ORGANIZATION, LINK, usage())
    process.readings.save_status(ORGANIZATION, LINK, status())
    process.readings.save_status(ORGANIZATION, other, status(connected=False))
    for each in (process, installation.process()):
        assert each.readings.load([LINK, other, uuid4()]) == {
            LINK: NetworkReading(usage(), status()),
            other: NetworkReading(None, status(connected=False)),
        }
        assert each.readings.load([]) == {}


def test_an_older_reading_never_replaces_a_newer_one(process: Process) -> None:
    """Usage and status have each an age of their own."""
    readings = process.readings
    for moments in ((NOON, LATER), (LATER, NOON)):
        link_id = uuid4()
        for at in moments:
            readings.save_usage(ORGANIZATION, link_id, usage(at, used_mb=at.microsecond))
            readings.save_status(ORGANIZATION, link_id, status(at, connected=at == LATER))
        newer = NetworkReading(usage(LATER, used_mb=1), status(LATER))
        assert readings.load([link_id]) == {link_id: newer}
    readings.save_usage(ORGANIZATION, LINK, usage(LATER))
    readings.save_status(ORGANIZATION, LINK, status(NOON))
    readings.save_usage(ORGANIZATION, LINK, usage(NOON, used_mb=99))
    assert readings.load([LINK])[LINK] == NetworkReading(usage(LATER), status(NOON))


def test_a_msisdn_that_was_told_once_stays_until_another_is_told(process: Process) -> None:
    """It stands in its column only."""
    process.readings.save_usage(ORGANIZATION, LINK, usage())
    with process.stores.reading() as connection:
        (row,) = connection.exec_driver_sql("SELECT msisdn, usage FROM network_readings").all()
    assert (row.msisdn, json.loads(row.usage)["msisdn"]) == (MSISDN, None)
    process.readings.save_usage(ORGANIZATION, LINK, usage(LATER, msisdn=None))
    assert process.readings.load([LINK])[LINK].usage == usage(LATER, msisdn=MSISDN)
    changed = usage(LATER, msisdn="+88351")
    process.readings.save_usage(ORGANIZATION, LINK, changed)
    assert process.readings.load([LINK])[LINK].usage == changed
    assert process.readings.with_msisdn(ORGANIZATION, MSISDN, 9) == []


def test_links_are_found_by_a_part_of_their_msisdn(process: Process) -> None:
    links = sorted(uuid4() for _ in range(3))
    for link_id, end in zip(links, ("12345678", "22222222", "33333333"), strict=True):
        process.readings.save_usage(ORGANIZATION, link_id, usage(msisdn=f"+8835100{end}"))
    process.readings.save_usage(uuid4(), uuid4(), usage())
    found = {"+883": 3, "12345678": 1, "00": 3, "%": 0, "_": 0, "\\": 0, "9999": 0}
    for part, count in found.items():
        assert process.readings.with_msisdn(ORGANIZATION, part, 9) == links[:count], part
        assert process.readings.with_msisdn(ORGANIZATION, part, 2) == links[: min(count, 2)]
        assert process.readings.with_msisdn(uuid4(), part, 9) == []


def test_many_links_are_read_in_one_statement(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = [uuid4() for _ in range(100)]
    for link_id in links:
        process.readings.save_status(ORGANIZATION, link_id, status())
    asked: list[object] = []
    ours, read = get_ident(), Database.rows

    def noted(database: Database, hot: Any, **values: Any) -> Any:
        if get_ident() == ours:  # A process that still ends elsewhere may read as well.
            asked.append(hot)
        return read(database, hot, **values)

    monkeypatch.setattr(Database, "rows", noted)
    assert set(process.readings.load(links)) == set(links)
    assert len(asked) == 1


def test_writers_that_race_leave_the_newest(installation: Installation, process: Process) -> None:
    readings = [process.readings, installation.process().readings]
    moments = [NOON + timedelta(seconds=second) for second in range(40)]

    def keep(turn: int) -> None:
        at = moments[turn * 17 % 40]
        readings[turn % 2].save_usage(ORGANIZATION, LINK, usage(at))
        readings[turn % 2].save_status(ORGANIZATION, LINK, status(at))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(keep, range(40)))
    newest = NetworkReading(usage(moments[-1]), status(moments[-1]))
    assert readings[0].load([LINK]) == {LINK: newest}


def test_what_is_old_is_forgotten_for_all_or_for_one_organization(process: Process) -> None:
    readings, other = process.readings, uuid4()
    owners = {uuid4(): ORGANIZATION, uuid4(): other}
    fresh, half = uuid4(), uuid4()
    for link_id, owner in owners.items():
        readings.save_usage(owner, link_id, usage(NOON))
    readings.save_usage(ORGANIZATION, fresh, usage(LATER))
    readings.save_usage(ORGANIZATION, half, usage(LATER))
    readings.save_status(ORGANIZATION, half, status(NOON))
    assert readings.forget(LATER, ORGANIZATION) == 2
    assert set(readings.load([*owners, fresh, half])) == {[*owners][1], fresh}
    assert readings.forget(LATER) == 1
    assert readings.forget(LATER) == 0
    assert set(readings.load([*owners, fresh, half])) == {fresh}


@pytest.mark.any_database
def test_a_reading_that_is_broken_was_never_seen(process: Process) -> None:
    for broken in ("usage = 'broken'", """status = '{"as_of": 1}'"""):
        process.readings.save_usage(ORGANIZATION, LINK, usage())
        process.readings.save_status(ORGANIZATION, LINK, status())
        with process.stores.writing() as connection:
            connection.exec_driver_sql(f"UPDATE network_readings SET {broken}")  # noqa: S608  # Our own words.
        assert process.readings.load([LINK]) == {}
        process.readings.forget(LATER)


def test_an_upgrade_makes_the_index(process: Process) -> None:
    process.readings.save_usage(ORGANIZATION, LINK, usage())
    with process.stores.writing() as connection:
        indexes = [each["name"] for each in inspect(connection).get_indexes("network_readings")]
        assert len(indexes) == 1
        connection.exec_driver_sql(f"DROP INDEX {indexes[0]}")
    migrate(process)
    with process.stores.reading() as connection:
        made = inspect(connection).get_indexes("network_readings")
    assert [each["name"] for each in made] == indexes
    assert process.readings.with_msisdn(ORGANIZATION, "12345678", 9) == [LINK]
    assert process.readings.load([LINK])[LINK].usage == usage()
