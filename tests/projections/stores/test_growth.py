"""Purges and erasures change rows in parts, so no statement grows with the table."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from app.processes import runtime
from app.processes.runtime import Runtime
from domain.lookups.ports import CachedFacts, NumberFacts
from projections.engine import in_parts
from projections.engine.database import Database, to_micros
from tests.installation import Installation, Process, SetClock, numbers, postgresql_only, wait_until
from workers import schedule

pytestmark = pytest.mark.each_database

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(days=365)
ORGANIZATION = UUID("0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60")
ROWS = 30_000
PART = 2_000
# Each row is found, locked and changed along an index. Whoever looks in each part at all that are
# left reads many times as much.
READS_MAX = 3 * ROWS

OF_TABLE = text(
    "SELECT n_tup_upd + n_tup_del, seq_tup_read FROM pg_stat_user_tables WHERE relname = :table"
)
OF_INDEXES = text("SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = :table")

EACH = f"FROM generate_series(1, {ROWS}) AS i"
ID = "md5(i::text)::uuid"
NUMBER = "'+1415' || lpad(i::text, 7, '0')"
AT = to_micros(NOON)
FILL = {
    "lookup_cache": f"SELECT '{ORGANIZATION}'::uuid, {NUMBER}, {AT} + i, ''::bytea {EACH}",
    "network_readings": f"SELECT {ID}, '{ORGANIZATION}'::uuid, NULL, NULL, {AT} + i {EACH}",
    "counters": f"SELECT 'throttle', {ID}::text, 1, {AT} + i, NULL {EACH}",
}

Forget = Callable[[Process], int]
WAYS: dict[str, tuple[str, Forget]] = {
    "cache": ("lookup_cache", lambda it: it.lookup_cache.forget(LATER)),
    "cache of one": ("lookup_cache", lambda it: it.lookup_cache.forget(LATER, ORGANIZATION)),
    "readings": ("network_readings", lambda it: it.readings.forget(LATER, ORGANIZATION)),
    "counters": ("counters", lambda it: it.counters.forget_lapsed()),
}


def fill(database: Database, table: str) -> None:
    with database.writing() as connection:
        # Of a table just restored it knows nothing yet: the worst plans are made then.
        connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        connection.exec_driver_sql(f"INSERT INTO {table} {FILL[table]}")


def left(database: Database, table: str) -> int:
    with database.reading() as connection:
        count: int = connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()  # noqa: S608  # Our own name.
    return count


def work_done(database: Database, table: str) -> tuple[int, int]:
    """Return how many rows of a table PostgreSQL has changed, and how many it has read for that."""
    name = {"table": table}
    with database.reading() as connection:
        changed, read = connection.execute(OF_TABLE, name).one()
        by_index = connection.execute(OF_INDEXES, name).scalar_one()
    return changed, read + int(by_index)


@postgresql_only("SQLite counts no rows")
@pytest.mark.parametrize("way", WAYS)
def test_a_table_of_any_size_is_emptied(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(in_parts, "PART_ROWS", PART)
    process = installation.process(SetClock(LATER))
    table, forget = WAYS[way]
    database = process.stores
    fill(database, table)
    _, before = work_done(database, table)
    assert forget(process) == ROWS
    database.engine.dispose()  # Who leaves tells all that it has done.
    wait_until(lambda: work_done(database, table)[0] == ROWS)
    assert work_done(database, table)[1] - before <= READS_MAX
    assert left(database, table) == 0


def keep(process: Process, count: int, at: datetime) -> None:
    """Keep answers of one moment and its next microseconds."""
    facts = [NumberFacts(number, valid=False) for number in numbers(count)]
    moments = (at + timedelta(microseconds=index) for index in range(count))
    answers = [
        CachedFacts(each, "offline", moment) for each, moment in zip(facts, moments, strict=True)
    ]
    process.lookup_cache.save(ORGANIZATION, answers)


def test_what_is_cut_off_halfway_is_completed_by_the_next_call(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_parts, "PART_ROWS", 10)
    keep(process, 45, NOON)
    assert process.lookup_cache.forget(LATER, parts_max=2) == 20
    assert process.lookup_cache.forget(LATER, ORGANIZATION, parts_max=1) == 10
    assert left(process.stores, "lookup_cache") == 15
    assert process.lookup_cache.forget(NOON + timedelta(microseconds=44)) == 14
    assert process.lookup_cache.forget(LATER, ORGANIZATION) == 1


def test_a_clock_purges_soon_after_its_start_and_goes_on_at_the_next_tick(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one provider's answers may be kept for counts, where it is longer than usual."""
    installation.environment["LOOKUP_CACHE_TTLS_S"] = "telnyx=172800,twilio=0"
    monkeypatch.setattr(in_parts, "PART_ROWS", 10)
    monkeypatch.setattr(runtime, "PART_ROWS", 10)
    monkeypatch.setattr(runtime, "PURGE_PARTS", 2)
    monkeypatch.setattr(runtime, "PURGE_FIRST_S", 0.0)
    monkeypatch.setattr(schedule, "TICK_S", 0.01)
    process = installation.process()
    keep(process, 45, NOON)
    keep(process, 1, process.clock() - timedelta(hours=36))
    clock = Runtime(process, {"clock"})
    clock.start()
    try:
        wait_until(lambda: left(process.stores, "lookup_cache") == 1, 10.0)
    finally:
        clock.stop()


def test_a_clock_puts_right_what_was_planned_each_time_that_it_was_set(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also at its start, because it may have been set while nothing ran."""
    seen: list[datetime] = []
    monkeypatch.setattr(process.webhook_deliveries, "put_right", seen.append)
    process.clock, process.monotonic = (clock := SetClock()), lambda: 0.0
    role = Runtime(process, {"clock"})

    def purges() -> list[datetime]:
        role._purge()  # noqa: SLF001  # Instead of a minute.
        return seen

    began = clock()
    assert purges() == purges() == [began]
    set_to = clock.forward(hours=-3)
    assert purges() == purges() == [began, set_to]
