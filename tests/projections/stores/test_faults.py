"""Requests go on without a store that fails; it is logged once per outage and counted."""

import logging
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from prometheus_client import generate_latest

from domain.links.network import NetworkStatus
from domain.lookups.ports import CachedFacts, NumberFacts
from tests.installation import Process

ORGANIZATION = UUID("0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60")
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NUMBER = "+14155550100"


def find_answer(process: Process) -> None:
    process.lookup_cache.load(ORGANIZATION, [NUMBER], NOON)


def keep_answer(process: Process) -> None:
    facts = NumberFacts(NUMBER, valid=False)
    process.lookup_cache.save(ORGANIZATION, [CachedFacts(facts, "offline", NOON)])


def find_reading(process: Process) -> None:
    assert not process.readings.load([uuid4()])


def keep_status(process: Process) -> None:
    status = NetworkStatus("active", connected=False, network=None, last_seen_at=None, as_of=NOON)
    process.readings.save_status(ORGANIZATION, uuid4(), status)


def find_number(process: Process) -> None:
    assert not process.readings.with_msisdn(ORGANIZATION, "4155", 10)


def claim(process: Process) -> None:
    soon = process.clock() + timedelta(seconds=5)
    assert process.counters.acquire(uuid4(), "f", soon) is None


def give_back(process: Process) -> None:
    process.counters.release(uuid4(), "f")


def take_turn(process: Process) -> None:
    assert process.counters.reserve("one", 1_000_000, 9, 0.1) == 0.0


def count_requests(process: Process) -> None:
    process.counters.count_requests(ORGANIZATION, 1, 1)


WAYS: dict[Callable[[Process], None], tuple[str, str]] = {
    find_answer: ("lookup_cache", "lookup_cache"),
    keep_answer: ("lookup_cache", "lookup_cache"),
    find_reading: ("network_readings", "network_readings"),
    keep_status: ("network_readings", "network_readings"),
    find_number: ("network_readings", "network_readings"),
    claim: ("leases", "counters"),
    give_back: ("leases", "counters"),
    take_turn: ("provider_paces", "counters"),
    count_requests: ("rate_limits", "counters"),
}


def rename(process: Process, old: str, new: str) -> None:
    with process.stores.writing() as connection:
        connection.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")


def move(process: Process, old: str, new: str) -> None:
    with process.stores.writing() as connection:
        connection.exec_driver_sql(f"ALTER TABLE network_readings RENAME COLUMN {old} TO {new}")


def lines_of(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [each for each in caplog.records if each.name == "projections.stores.faults"]


@pytest.mark.each_database
def test_an_outage_is_two_lines_and_every_error_counts(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    counted = Counter[str]()
    for use, (store, table) in WAYS.items():
        caplog.clear()
        use(process)
        rename(process, table, "gone")
        for _ in range(3):
            use(process)
        rename(process, "gone", table)
        use(process)
        lines = lines_of(caplog)
        assert [each.levelno for each in lines] == [logging.ERROR, logging.WARNING], use
        said = f"{store} does not work, requests go on without it: "
        assert lines[0].getMessage().startswith(said)
        assert lines[1].getMessage() == f"{store} works again"
        counted[store] += 3
    shown = generate_latest(process.metrics.registry("worker")).decode()
    for store, count in counted.items():
        assert f'store_errors_total{{store="{store}"}} {count}.0' in shown


def test_an_outage_of_one_use_is_not_over_while_another_one_works(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    move(process, "organization_id", "gone")
    for _ in range(3):
        find_number(process)
        find_reading(process)
    assert [each.levelno for each in lines_of(caplog)] == [logging.ERROR]
    move(process, "gone", "organization_id")
    find_number(process)
    assert [each.levelno for each in lines_of(caplog)] == [logging.ERROR, logging.WARNING]
