"""A receiver of PostgreSQL's log that is gone shows by its slot, whoever it was and since when."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from app.bootstrap.observed import SLOTS
from tests.installation import Installation, Process, wait_until
from tests.servers.postgres import REPLICATED, PostgresServer
from tests.servers.running import newest

SEGMENT = 16 << 20
# What a slot may keep at most, so that little has to be written until one is lost.
SETTINGS = {**REPLICATED, "max_slot_wal_keep_size": f"{4 * SEGMENT >> 20}MB"}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    made = PostgresServer(SETTINGS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def process(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    made = Installation(tmp_path_factory.mktemp("slots"), DATABASE_URL=server.url())
    yield made.process()
    made.close()


@pytest.fixture
def admin(server: PostgresServer) -> Iterator[psycopg.Connection]:
    """A connection of a superuser; slots that a test has left are dropped."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        yield connection
        connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


def shown(process: Process) -> dict[str, int]:
    found = process.observed.database_load()["database_inactive_slot_bytes"]
    assert isinstance(found, dict)
    return found


def write_segment(admin: psycopg.Connection) -> None:
    admin.execute("SELECT pg_logical_emit_message(false, 'test', 'x'), pg_switch_wal()")


def test_a_slot_without_a_receiver_shows_what_is_kept_for_it(
    process: Process, admin: psycopg.Connection
) -> None:
    admin.execute("SELECT pg_create_physical_replication_slot('unused')")
    assert shown(process) == {}, "it has never been used and keeps nothing"
    admin.execute("SELECT pg_create_physical_replication_slot('gone', true)")
    before = shown(process)["gone"]
    write_segment(admin)
    write_segment(admin)
    assert shown(process)["gone"] - before > SEGMENT
    admin.execute("SELECT pg_drop_replication_slot('gone')")
    assert shown(process) == {}


def test_a_receiver_shows_when_it_is_gone_and_no_more_when_it_is_back(
    process: Process, admin: psycopg.Connection, server: PostgresServer, tmp_path: Path
) -> None:
    """It replays nothing, so it is none of the standbys that are behind."""
    admin.execute("SELECT pg_create_physical_replication_slot('archive', true)")
    program = str(newest("usr/lib/postgresql/*/bin/pg_receivewal"))
    for directory in (tmp_path / "one", tmp_path / "two"):  # A file that is half made is refused.
        directory.mkdir()
        command = [program, "-S", "archive", "--no-loop", "-d", server.url(), "-D", str(directory)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as receiver:
            try:
                wait_until(lambda: shown(process) == {})
            finally:
                receiver.kill()
        wait_until(lambda: shown(process).keys() == {"archive"})


def test_a_slot_that_has_lost_its_log_still_shows(
    process: Process, admin: psycopg.Connection
) -> None:
    """Nothing more is kept, and its receiver must be made anew: that is no recovery."""
    admin.execute("SELECT pg_create_physical_replication_slot('late', true)")
    lost = "SELECT wal_status FROM pg_replication_slots"
    while admin.execute(lost).fetchone() != ("lost",):
        write_segment(admin)
        admin.execute("CHECKPOINT")
    assert shown(process) == {"late": 0}


def test_a_role_without_rights_to_statistics_sees_slots(admin: psycopg.Connection) -> None:
    admin.execute("SELECT pg_create_physical_replication_slot('gone', true)")
    with admin.transaction(force_rollback=True):
        admin.execute("CREATE ROLE service")
        admin.execute("SET LOCAL ROLE service")
        assert [name for name, _ in admin.execute(SLOTS)] == ["gone"]
