"""Behind a pooler: a session that is kept does for everything, any other is refused by name."""

from collections.abc import Callable

import psycopg
import pytest

from app.adapters.postgres import connection as postgres_connection
from app.adapters.postgres.connection import NO_ROOM, SHARED, BoundedConnection
from app.processes.migrate import CannotMigrate, migrate
from app.processes.readiness import what_is_missing
from tests.app.adapters.conftest import NewProcess
from tests.installation import PATIENCE_S, wait_until
from tests.projections.looking import register
from tests.servers.pgbouncer import PgBouncer

Pooler = Callable[..., PgBouncer]
SETTINGS_OF_A_SESSION = (
    "SELECT name, setting FROM pg_settings WHERE source = 'session' AND name <> 'application_name'"
)


def test_a_session_of_its_own_does_for_everything(
    pooler: Pooler, database_url: str, new_process: NewProcess
) -> None:
    process, other = (new_process(pooler(database_url, "session").url) for _ in range(2))
    migrate(process)
    assert what_is_missing(process) is None
    register(process, 3)
    process.projector.catch_up()
    lock, rival = (each.persistence.lock("projector") for each in (process, other))
    assert lock.acquire()
    assert not rival.acquire()
    process.listen()
    appended = process.log.appended
    wait_until(lambda: appended.count > 0)
    seen = appended.count
    register(other, 1)
    assert appended.wait(seen, PATIENCE_S)
    with process.views.reading() as connection:
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "30s"
    for each in (lock, rival):
        each.release()


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_sessions_that_are_shared_are_refused_before_one_is_used(
    pooler: Pooler, migrated_url: str, new_process: NewProcess, mode: str
) -> None:
    server = pooler(migrated_url, mode)
    process = new_process(server.url)
    assert what_is_missing(process) == f"DATABASE_URL {SHARED}"
    with pytest.raises(CannotMigrate, match="pool_mode = session"):
        migrate(process)
    with psycopg.connect(server.url, autocommit=True) as next_one:
        assert next_one.execute(SETTINGS_OF_A_SESSION).fetchall() == []
    server.start("session")
    migrate(process)  # It has waited, and goes on by itself.
    assert what_is_missing(process) is None


def test_a_pool_without_a_second_session_is_named(
    pooler: Pooler, database_url: str, new_process: NewProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedConnection, "answer_s", 0.5)
    monkeypatch.setattr(postgres_connection, "SPARE_S", 0.5)
    process = new_process(pooler(database_url, "session", size=1).url)
    assert what_is_missing(process) == "DATABASE_URL " + NO_ROOM.format(seconds=0.5)
