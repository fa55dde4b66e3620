"""Statements on many rows of an own store lock them in the order of their keys: no deadlocks."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from projections.stores.reading_schedule import DueReading
from tests.installation import PATIENCE_S, Installation, Process, postgresql_only, wait_until

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
OWNER = UUID(int=7)
IDS = [UUID(int=number) for number in range(1, 10)]
NUMBERS = [f"+1415000000{number}" for number in range(1, 10)]

# As a later one lies before an earlier one in the table, a plain statement locks it first.
EACH = "FROM generate_series(9, 1, -1) AS i"
ID, TEXT = "lpad(i::text, 32, '0')::uuid", "lpad(i::text, 32, '0')"
LAPSED = f"SELECT 'slices_in_hand', {TEXT}, 0, 1, 'me' {EACH}"
TURNS = f"SELECT {ID}, '{OWNER}'::uuid, 'simulated', i, 5, 0, NULL {EACH}"
DELIVERIES = f"""
    (id, organization_id, endpoint_id, type, about, position, body, status, attempts, retries,
    created_at, next_attempt_at, taken_until) SELECT {ID}, '{OWNER}'::uuid, '{OWNER}'::uuid, 'a',
    {ID}, i, ''::bytea, 'pending', 0, 0, 0, 0, 5 {EACH}
"""
READINGS = f"SELECT {ID}, '{OWNER}'::uuid, NULL, NULL, 0 {EACH}"
CACHE = f"SELECT '{OWNER}'::uuid, '+1415000000' || i, 0, ''::bytea {EACH}"

Act = Callable[[Process], object]


def reopen(process: Process) -> None:
    with process.views.writing() as connection:
        process.webhook_deliveries.reopen(connection, IDS, OWNER, NOW)


WAYS: dict[str, tuple[str, str, Act]] = {
    "hasten": ("reading_turns", TURNS, lambda it: it.sandbox.advance(HOUR, OWNER)),
    "move": (
        "counters",
        LAPSED,
        lambda it: it.counters.move(
            "slices_in_hand", [each.hex for each in IDS], "me", "me", NOW + HOUR
        ),
    ),
    "forget": ("counters", LAPSED, lambda it: it.counters.forget("slices_in_hand")),
    "clear": ("counters", LAPSED, lambda it: it.counters.clear("slices_in_hand")),
    "cancel": (
        "webhook_deliveries",
        DELIVERIES,
        lambda it: it.webhook_deliveries.cancel(OWNER, NOW),
    ),
    "release": ("webhook_deliveries", DELIVERIES, lambda it: it.webhook_deliveries.release()),
    "reopen": ("webhook_deliveries", DELIVERIES, reopen),
    "links": ("network_readings", READINGS, lambda it: it.readings.forget_links(OWNER, IDS)),
    "numbers": ("lookup_cache", CACHE, lambda it: it.lookup_cache.forget_numbers(OWNER, NUMBERS)),
}
KEY = {"counters": "key", "reading_turns": "link_id", "network_readings": "link_id"}
KEY |= {"webhook_deliveries": "id", "lookup_cache": "phone_number"}
WAITING = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND wait_event_type = 'Lock'"
)


def is_waiting(process: Process) -> bool:
    with process.views.reading() as connection:
        return bool(connection.execute(WAITING).scalar_one())


@postgresql_only("SQLite has one writer at a time")
def test_rows_are_locked_in_the_order_of_their_keys(installation: Installation) -> None:
    process, other, third = (installation.process() for _ in range(3))
    for way, (table, filled, act) in WAYS.items():
        with other.views.writing() as connection:
            connection.execute(text(f"TRUNCATE {table}"))
            connection.execute(text(f"INSERT INTO {table} {filled}"))  # Our own words.
        rows = text(f"SELECT {KEY[table]} FROM {table} ORDER BY 1 FOR UPDATE SKIP LOCKED")  # noqa: S608  # As above.
        fifth = text(f"SELECT 1 FROM {table} WHERE {KEY[table]}::text LIKE '%5' FOR UPDATE")  # noqa: S608  # As above.
        with ThreadPoolExecutor(1) as pool:
            with other.views.writing() as connection:
                connection.execute(fifth)
                acting = pool.submit(act, process)
                wait_until(lambda: is_waiting(process))
                with third.views.writing() as looking:
                    free = [str(key)[-1] for (key,) in looking.execute(rows)]
            acting.result(PATIENCE_S)
        assert free == ["6", "7", "8", "9"], way


@pytest.mark.each_database
def test_a_clock_whose_links_cannot_be_asked_for_has_not_moved(installation: Installation) -> None:
    """Who gets 503 tries again, and would otherwise be twice as far ahead."""
    process = installation.process()
    turn = DueReading(IDS[0], OWNER, "simulated", 1, NOW)
    process.reading_schedule.enter([turn], NOW)
    with process.stores.writing() as connection:
        refusing = "ALTER TABLE reading_turns ADD CHECK (due_at > 0) NOT VALID"
        if connection.dialect.name == "sqlite":
            raises = "BEGIN SELECT RAISE(ABORT, 'refused'); END"
            refusing = f"CREATE TRIGGER refusing BEFORE UPDATE ON reading_turns {raises}"
        connection.execute(text(refusing))
    with pytest.raises(IntegrityError):
        process.sandbox.advance(HOUR, OWNER)
    assert process.counters.simulated_ahead([OWNER]) == timedelta(0)
