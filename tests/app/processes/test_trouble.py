"""A database in trouble is named, with what it says itself; `migrate` is for tables alone."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from werkzeug.test import TestResponse

from app.adapters.postgres import log as postgres_log
from app.bootstrap.container import Container
from app.http.application import create_app
from app.http.edge import errors
from app.processes.readiness import what_is_missing
from app.settings import Settings
from app.watch.trouble import NOT_MIGRATED
from tests.app.cli.shell import Shell
from tests.log_lines import said_by
from tests.servers.databases import Databases
from tests.servers.running import free_port

SECRET = "hunter2"
OUTAGES = errors.__name__


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    made = databases.new()
    yield made
    databases.drop(made)


@pytest.fixture
def guest(databases: Databases) -> Iterator[str]:
    """The name of a user whom the server lets in no more: it has too many clients."""
    name = f"guest_{uuid4().hex}"
    admin = databases.new()
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 0 PASSWORD '{SECRET}'")
        yield name
        connection.execute(f"DROP ROLE {name}")
    databases.drop(admin)


@contextmanager
def container_at(url: str, home: Path) -> Iterator[Container]:
    keys = str(home / "keys")
    container = Container(Settings.from_env({"DATABASE_URL": url, "SIGNING_KEYS": keys}))
    try:
        container.keys.ensure()
        yield container
    finally:
        container.close()


def said_everywhere(nowhere: Shell, url: str) -> list[str]:
    """Return what a command, a waiting process, `migrate` and a probe say of a database."""
    at = nowhere.having(DATABASE_URL=url)
    with container_at(url, nowhere.home) as container:
        probe = create_app(container).test_client().get("/readyz")
        assert probe.status_code == 503
        return [at.refusal("org", "list"), str(what_is_missing(container)), *probe.json["missing"]]


def test_a_server_that_is_away_is_named_with_what_the_driver_says(nowhere: Shell) -> None:
    port = free_port()
    for said in said_everywhere(nowhere, f"postgresql://me:{SECRET}@127.0.0.1:{port}/service"):
        wanted = f"the database service on 127.0.0.1:{port} cannot be reached: .*Connection refused"
        assert re.search(wanted, said), said
        assert "migrate" not in said
        assert SECRET not in said


def test_what_a_server_refuses_a_role_is_quoted(
    nowhere: Shell, migrated_url: str, guest: str
) -> None:
    full = re.sub("//[^@]*@", f"//{guest}:{SECRET}@", migrated_url)
    for said in said_everywhere(nowhere, full):
        assert re.search(r"the database .* refuses: too many connections for role", said), said
        assert "migrate" not in said
        assert SECRET not in said
    with psycopg.connect(migrated_url, autocommit=True) as admin:
        admin.execute(f"ALTER ROLE {guest} CONNECTION LIMIT -1")
    assert "says: permission denied" in nowhere.having(DATABASE_URL=full).refusal("migrate")


def test_only_a_database_without_tables_needs_them(nowhere: Shell, url: str) -> None:
    assert said_everywhere(nowhere, url) == [NOT_MIGRATED] * 3


def test_tables_of_a_later_release_are_not_to_be_migrated(
    nowhere: Shell, migrated_url: str
) -> None:
    with container_at(migrated_url, nowhere.home) as container:
        with container.stores.writing() as connection:
            connection.exec_driver_sql("UPDATE schema_versions SET version = 99")
        assert "later release" in str(what_is_missing(container))
    assert "are of version 99" in nowhere.having(DATABASE_URL=migrated_url).refusal("org", "list")


def many(ask: Callable[[], TestResponse], count: int = 20) -> list[int]:
    return [ask().status_code for _ in range(count)]


def test_many_requests_that_get_503_are_one_line_with_the_reason(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(errors, "SAY_EVERY_S", 3_600.0)  # However slow the machine is.
    caplog.set_level(logging.ERROR)
    with container_at(f"{url}_gone", tmp_path) as container:
        client = create_app(container).test_client()
        token = {"grant_type": "client_credentials", "client_id": "a", "client_secret": "b"}
        assert many(lambda: client.post("/auth/token", data=token)) == [503] * 20
        place = container.persistence.location
    (line,) = said_by(caplog, OUTAGES)
    assert line.startswith(f"requests get 503: the database {place} refuses: database")


def test_a_full_pool_is_called_so(
    migrated_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(postgres_log, "POOL_MAX", 1)
    monkeypatch.setattr(postgres_log, "POOL_WAIT_S", 1.0)
    with container_at(migrated_url, tmp_path) as container:
        client = create_app(container).test_client()
        assert client.get("/readyz").status_code == 200
        with container.log.recorder.datastore.get_connection():  # type: ignore[attr-defined]  # Of PostgreSQL.
            reply = client.get("/readyz")
        assert reply.status_code == 503
        assert reply.json["missing"][0].startswith("a full pool: every connection of this process")
        assert client.get("/readyz").status_code == 200
    assert len(said_by(caplog, OUTAGES)) == 1
