"""What must last is on the disk before a reply, whatever the session is set to."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from threading import current_thread, main_thread
from uuid import uuid4

import psycopg
import pytest
from eventsourcing.persistence import StoredEvent
from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError

from app.adapters.databases import Databases
from app.adapters.postgres.database import PostgresDatabase, conninfo
from app.adapters.postgres.log import Datastore, PostgresLogRecorder
from app.adapters.sqlite.database import SqliteFiles
from domain.accounts.wallet import Wallet
from projections.engine.database import Database, is_outage
from projections.engine.inserting import driver_of
from tests.installation import PATIENCE_S, Process

INSERTS = 20
NORMAL, FULL = 1, 2  # As SQLite tells them.
SETTING = "SHOW synchronous_commit"
CAREFREE = "?options=-c%20synchronous_commit%3Doff"
END_OF_LOG = "SELECT pg_current_wal_flush_lsn() = pg_current_wal_insert_lsn()"


@pytest.fixture
def recorder(shaky_url: str) -> Iterator[PostgresLogRecorder]:
    """On a server of its own, where nobody else writes, through sessions that do not wait."""
    datastore = Datastore(conninfo(shaky_url + CAREFREE))
    made = PostgresLogRecorder(datastore, events_table_name="log_events")
    made.create_table()
    yield made
    datastore.close()


def test_events_are_on_the_disk_when_their_insert_is_answered(
    recorder: PostgresLogRecorder, shaky_url: str
) -> None:
    with psycopg.connect(shaky_url, autocommit=True) as other:
        for _ in range(INSERTS):
            recorder.insert_events([StoredEvent(uuid4(), 1, Wallet.Opened.TOPIC, b"{}")])
            assert other.execute(END_OF_LOG).fetchone() == (True,)
    with recorder.datastore.get_connection() as connection:
        assert connection.execute(SETTING).fetchone() == {"synchronous_commit": "off"}


def test_what_must_survive_a_crash_is_committed_durably(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The changes of the simulated network and of its clock, and what is forgotten on purpose."""
    asked: list[bool] = []
    writing, organization, now = Database.writing, uuid4(), process.clock()

    def noted(database: Database, *, durable: bool = False) -> AbstractContextManager[Connection]:
        if current_thread() is main_thread():  # Others are of a service that still runs.
            asked.append(durable)
        return writing(database, durable=durable)

    monkeypatch.setattr(Database, "writing", noted)
    for change in (
        lambda: process.bare_network.release_esim("1", timeout_s=PATIENCE_S),
        lambda: process.counters.advance_simulated(timedelta(hours=1)),
        lambda: process.lookup_cache.forget(now),
        lambda: process.lookup_cache.forget_numbers(organization, ["+14155550100"]),
        lambda: process.readings.forget(now),
        lambda: process.readings.forget_links(organization, [uuid4()]),
    ):
        asked.clear()
        change()
        assert asked
        assert all(asked), change


@pytest.mark.parametrize(
    ("told", "within"), [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply",) * 2]
)
def test_keys_are_as_durable_as_the_log(database_url: str, told: str, within: str) -> None:
    *_, keys = opened(f"{database_url}?options=-c%20synchronous_commit%3D{told}")
    assert settings(keys) == [within, told]


def test_read_models_do_not_wait_and_their_sessions_remember_nothing(database_url: str) -> None:
    views, stores, _ = opened(database_url)
    assert settings(views) == ["off", "on"]
    assert stores is views
    with views.snapshot() as connection:
        level = connection.exec_driver_sql("SHOW transaction_isolation").scalar()
    views.close()
    assert level == "repeatable read"


def test_a_durable_commit_waits_on_the_connections_of_those_that_do_not(database_url: str) -> None:
    views, *_ = opened(database_url)
    found = []
    for durable in (False, True, False, True):
        with views.writing(durable=durable) as connection:
            found.append(connection.exec_driver_sql(SETTING).scalar())
            session = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            found.append(session)
    views.close()
    assert found == ["off", session, "on", session] * 2


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("first", ["a read", "a write", "the commit"])
def test_a_session_that_ends_as_a_transaction_begins_is_an_outage(
    database_url: str, first: str, *, durable: bool
) -> None:
    """A transaction begins in the round trip of what comes first in it."""
    views, *_ = opened(database_url)

    @event.listens_for(views.engine, "checkout")
    def end(connection: psycopg.Connection, *_: object) -> None:
        with psycopg.connect(database_url, autocommit=True) as other:
            ended = "SELECT pg_terminate_backend(%s, 10000)"
            assert other.execute(ended, [connection.info.backend_pid]).fetchone() == (True,)

    with pytest.raises(OperationalError) as raised:
        transact(views, first, durable=durable)
    assert is_outage(raised.value)
    event.remove(views.engine, "checkout", end)
    with views.writing(durable=durable) as connection:
        assert connection.exec_driver_sql(SETTING).scalar() == ("on" if durable else "off")
    views.close()


def transact(database: Database, first: str, *, durable: bool) -> None:
    with database.writing(durable=durable) as connection:
        if first == "a read":
            connection.exec_driver_sql(SETTING)
        elif first == "a write":
            with driver_of(connection) as driver:
                driver.write("SELECT set_config('work_mem', $1::text, true)", ["1MB"])
                driver.run("SELECT 1")


def test_a_durable_commit_to_a_file_waits_for_the_disk(tmp_path: Path) -> None:
    files = SqliteFiles(f"sqlite:///{tmp_path}/service.db")
    with files.migrating():
        _, stores, keys = files.databases()
    found = []
    for database, durable in ((stores, False), (stores, True), (keys, True), (keys, False)):
        with database.writing(durable=durable) as connection:
            found.append(connection.exec_driver_sql("PRAGMA synchronous").scalar())
    stores.close()
    keys.close()
    assert found == [NORMAL, FULL, FULL, FULL]


def opened(url: str) -> Databases:
    return PostgresDatabase(url).databases()


def settings(database: Database) -> list[str]:
    """Return what a transaction commits by, and what its session does afterwards.

    On one connection, also after it was lent to who reads, each by a level of its own.
    """
    found = []
    for lend in (database.reading, database.snapshot, database.writing, database.reading):
        with lend() as connection:
            connection.exec_driver_sql("SELECT 1")
            found.append(str(connection.exec_driver_sql(SETTING).scalar()))
    database.close()
    return found[-2:]
