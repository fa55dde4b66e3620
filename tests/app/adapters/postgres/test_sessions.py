"""What the server is told of our sessions, and what becomes of one that stands still."""

from contextlib import suppress
from datetime import UTC, timedelta
from threading import Event, Thread
from typing import Any, cast

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from app.adapters.postgres.database import KEYS_MAX, VIEWS_MAX, conninfo
from app.adapters.postgres.log import POOL_MAX
from domain.cause import utc_now
from domain.errors import ServiceUnavailable
from projections.engine.database import FREE_MIN, is_outage
from tests.installation import Installation, postgresql_only, wait_until
from tests.projections.looking import places, register
from tests.tidy.source import ROOT

ON_A_SERVER = postgresql_only("sessions of a server")
PAUSE_MAX = "SHOW idle_in_transaction_session_timeout"
END_CHECKED = (
    "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
)


@ON_A_SERVER
def test_a_transaction_may_not_stand_still_but_that_of_one_state_and_nothing_is_compiled(
    installation: Installation,
) -> None:
    process = installation.process()
    views, recorder = process.views, cast("Any", process.log.recorder)
    for transaction, pause_max in (
        (views.writing, "10s"),
        (views.snapshot, "0"),
        (views.writing, "10s"),  # Perhaps on the very connection of the snapshot.
    ):
        with transaction() as connection:
            assert connection.exec_driver_sql(PAUSE_MAX).scalar_one() == pause_max
            assert connection.exec_driver_sql("SHOW jit").scalar_one() == "off"
    with recorder.datastore.get_connection() as connection:
        assert connection.execute("SHOW jit").fetchone() == {"jit": "off"}


@ON_A_SERVER
def test_a_projector_that_stands_still_in_a_transaction_is_overtaken_and_goes_on(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused, other = installation.process(), installation.process()
    register(other, 3)
    holds, goes_on = Event(), Event()
    advance = paused.positions.advance

    def stand_still(connection: Connection, *args: Any) -> None:
        advance(connection, *args)
        if not holds.is_set():
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 300")
            holds.set()
            goes_on.wait()

    monkeypatch.setattr(paused.positions, "advance", stand_still)
    failed: list[Exception] = []

    def step() -> None:
        try:
            paused.projector.step()
        except DBAPIError as error:
            failed.append(error)

    thread = Thread(target=step)
    thread.start()
    assert holds.wait(10)
    other.projector.catch_up()  # It waits for the rows until the server has ended that session.
    goes_on.set()
    thread.join()
    assert [is_outage(error) for error in failed] == [True]
    register(other, 3)
    paused.projector.catch_up()
    assert set(places(paused).values()) == {paused.log.head()}
    assert all(each.failure is None for each in paused.positions.all(paused.views).values())


@ON_A_SERVER
def test_sessions_of_a_server_that_turned_read_only_are_left_and_stop_no_read_model(
    installation: Installation,
) -> None:
    process = installation.process()
    url = process.settings.database_url
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        connection.execute("SET default_transaction_read_only = off")
        with pytest.raises(ServiceUnavailable):
            register(process, 1)
        with pytest.raises(DBAPIError) as raised, process.views.writing() as views:
            views.exec_driver_sql("DELETE FROM follower_positions WHERE name = 'nobody'")
        assert is_outage(raised.value)
        connection.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')

    def can_write() -> bool:
        with suppress(ServiceUnavailable):
            return bool(register(process, 3))
        return False

    # By the same process, on other sessions. One that was being opened while the server was
    # read-only may come into the pool late; it costs a refusal and is left as well.
    wait_until(can_write)
    process.projector.catch_up()
    assert all(each.failure is None for each in process.positions.all(process.views).values())


@ON_A_SERVER
def test_the_time_of_the_server_is_told_in_utc(installation: Installation) -> None:
    zone = "options=-c%20timezone%3DAsia%2FTokyo"
    installation.environment["DATABASE_URL"] += f"?{zone}"
    process = installation.process()
    with process.views.reading() as connection:
        assert connection.exec_driver_sql("SHOW timezone").scalar_one() == "Asia/Tokyo"
    told = process.views.server_time()
    assert told is not None
    assert (told.tzinfo, abs(told - utc_now()) < timedelta(seconds=60)) == (UTC, True)


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("postgresql://a/service", None),
        ("postgresql://a:5432,b:5433/service", "read-write"),
        ("postgresql://a,b/service?target_session_attrs=any", "any"),
    ],
)
def test_of_several_hosts_the_one_that_takes_writes_is_meant(url: str, wanted: str | None) -> None:
    assert conninfo_to_dict(conninfo(url)).get("target_session_attrs") == wanted


def test_the_documents_say_how_many_connections_a_process_may_have() -> None:
    said = " ".join((ROOT / "docs/deployment.md").read_text().split())
    pools = {
        "log": POOL_MAX,
        "read models and stores": VIEWS_MAX,
        "keys of personal data": KEYS_MAX,
    }
    counts = ", ".join(f"{count} for the {what}" for what, count in pools.items())
    alone = 2  # To listen, and for the lock.
    assert f"at most {sum(pools.values()) + alone} ({counts}, one to listen" in said
    assert f"lists and other ordinary reads have {VIEWS_MAX - FREE_MIN} at most" in said


@ON_A_SERVER
def test_a_connection_that_ended_between_its_check_and_its_use_is_replaced(
    installation: Installation,
) -> None:
    process = installation.process()
    assert process.persistence.fault() is None
    with psycopg.connect(installation.environment["DATABASE_URL"], autocommit=True) as other:
        ended = other.execute(END_CHECKED).fetchall()
    assert ended == [(True,), (True,)]
    assert process.views.server_time() is not None
    assert process.vault.database.server_time() is not None


@ON_A_SERVER
def test_the_server_ends_the_lock_of_a_follower_that_stands_still_but_no_operators(
    installation: Installation,
) -> None:
    process, other = installation.process(), installation.process()
    follows, takes_over = (each.persistence.lock("clock") for each in (process, other))
    assert follows.acquire()
    assert process.operators_lock.acquire()
    wait_until(takes_over.acquire)
    assert not other.operators_lock.acquire()
    for each in (follows, takes_over, process.operators_lock, other.operators_lock):
        each.release()
