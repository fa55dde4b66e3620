"""A database of PostgreSQL holds one installation, all of it in one schema, and speaks UTF-8."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from app.bootstrap.known_keys import ensure_keys
from app.processes.doctor import examine
from app.processes.migrate import CannotMigrate, migrate
from app.processes.readiness import what_is_missing
from domain.accounts.organization import Organization
from domain.errors import NotPossible
from tests.app.adapters.conftest import NewProcess
from tests.installation import Process

OURS = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'"


@pytest.fixture
def admin(database_url: str) -> Iterator[psycopg.Connection]:
    yield from admin_of(database_url)


@pytest.fixture
def admin_of_tables(migrated_url: str) -> Iterator[psycopg.Connection]:
    yield from admin_of(migrated_url)


def admin_of(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA a; CREATE SCHEMA b")
        yield connection


def tables_in(admin: psycopg.Connection, schema: str) -> set[str]:
    return {row[0] for row in admin.execute(OURS, [schema]).fetchall()}


def refusal_of(process: Process) -> str:
    """Return the words in which all that begins refuses this database."""
    with pytest.raises((CannotMigrate, NotPossible)) as refused:
        migrate(process)
    told = str(refused.value)
    assert what_is_missing(process) == told
    assert told in {each.message for each in examine(process) if each.severity == "fault"}
    assert told.startswith("DATABASE_URL: ")
    assert "\n" not in told
    return told


def test_a_second_schema_gets_no_installation(
    new_process: NewProcess, admin: psycopg.Connection, database_url: str
) -> None:
    first = new_process(database_url, "a%2Cpublic")
    migrate(first)
    organization = first.organization()
    first.projector.catch_up()
    assert first.audit().ok
    assert {"log_events", "log_events_servers", "personal_keys"} <= tables_in(admin, "a")
    assert tables_in(admin, "public") == set()
    for other in ("b", ""):
        assert "schema a holds a log already" in refusal_of(new_process(database_url, other))
        assert tables_in(admin, other or "public") == set()
    again = new_process(database_url, "a")
    assert migrate(again) == []
    assert again.log.find(Organization, organization) is not None


@pytest.mark.parametrize("moved", ["log", "rest"])
def test_a_log_apart_from_its_tables_is_refused_until_they_are_together(
    new_process: NewProcess, admin_of_tables: psycopg.Connection, migrated_url: str, moved: str
) -> None:
    first, admin = new_process(migrated_url), admin_of_tables
    organization = first.organization()
    first.close()
    log = {each for each in tables_in(admin, "public") if each.startswith("log_events")}
    names = log if moved == "log" else tables_in(admin, "public") - log
    for name in names:
        statement = SQL("ALTER TABLE public.{} SET SCHEMA a")
        admin.execute(statement.format(Identifier(name)))
    before = (tables_in(admin, "public"), tables_in(admin, "a"))
    for schema in ("", "a"):
        assert "SET SCHEMA" in refusal_of(new_process(migrated_url, schema))
    assert (tables_in(admin, "public"), tables_in(admin, "a")) == before
    for name in names:
        admin.execute(SQL("ALTER TABLE a.{} SET SCHEMA public").format(Identifier(name)))
    again = new_process(migrated_url)
    assert migrate(again) == []
    assert again.log.find(Organization, organization) is not None


def test_a_table_of_somebody_else_that_is_called_alike_is_no_log(
    new_process: NewProcess, admin: psycopg.Connection, database_url: str
) -> None:
    admin.execute("CREATE TABLE b.log_events (line text)")
    made = new_process(database_url)
    migrate(made)
    assert what_is_missing(made) is None


def by_the_database(admin: psycopg.Connection, _: pytest.MonkeyPatch) -> None:
    name = Identifier(admin.info.dbname)
    admin.execute(SQL("ALTER DATABASE {} SET client_encoding = 'LATIN1'").format(name))


def by_the_environment(_: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")


@pytest.mark.parametrize("by", [by_the_database, by_the_environment])
def test_every_connection_speaks_utf8_whatever_is_set(
    new_process: NewProcess,
    admin: psycopg.Connection,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    by: Callable[[psycopg.Connection, pytest.MonkeyPatch], None],
) -> None:
    by(admin, monkeypatch)
    process = new_process(f"{database_url}?client_encoding=LATIN1")
    migrate(process)
    ensure_keys(process)
    organization = process.organization(name="東京")
    process.projector.catch_up()
    assert process.audit().ok
    assert [each.name for each in process.read(process.organizations.all)] == ["東京"]
    assert process.vault.seal(organization, "2026-03", organization, "東".encode()) is not None


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding_is_refused(
    new_process: NewProcess, database_url: str, encoding: str
) -> None:
    name = f"{urlsplit(database_url).path[1:]}_{encoding.lower()}"
    statement = SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING {} LOCALE 'C'")
    with psycopg.connect(database_url, autocommit=True) as server:
        server.execute(statement.format(Identifier(name), encoding))
    other = database_url.replace(urlsplit(database_url).path, f"/{name}")
    try:
        assert f"its encoding is {encoding}" in refusal_of(new_process(other))
        with psycopg.connect(other) as admin:
            assert tables_in(admin, "public") == set()
    finally:
        with psycopg.connect(database_url, autocommit=True) as server:
            server.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))
