"""A process waits for its installation, says what is missing, and can be told to end meanwhile."""

import logging
from threading import Event, Thread

import pytest

from app.bootstrap.container import Container
from app.processes.readiness import wait_until_reached, wait_until_ready, what_is_missing
from app.settings import Settings
from tests.app.cli.serving import free_port
from tests.app.cli.shell import Shell
from tests.installation import PATIENCE_S, wait_until
from tests.servers.databases import Databases

NO_DATABASE = "there is no database at "
OLD = "the tables of this installation are not up to date; run: python -m app migrate"


def test_nothing_is_missing_where_the_tables_are(shell: Shell) -> None:
    assert what_is_missing(shell.container()) is None


def test_an_installation_without_tables_is_named_and_nothing_is_made(nowhere: Shell) -> None:
    assert str(what_is_missing(nowhere.container())).startswith(NO_DATABASE)
    assert [*nowhere.home.iterdir()] == []


def test_read_models_of_another_release_are_named(shell: Shell) -> None:
    container = shell.container()
    wallets = container.wallets
    wallets.version += 1
    said = what_is_missing(container)
    assert said == f"read models of another release; run: python -m app migrate ({wallets.name}, …)"


def missing_at(url: str) -> str | None:
    container = Container(Settings.from_env({"DATABASE_URL": url}))
    try:
        return what_is_missing(container)
    finally:
        container.close()


def test_a_server_that_is_away_is_named_without_what_its_url_holds() -> None:
    url = f"postgresql://someone:hunter2@127.0.0.1:{free_port()}/service"
    said = str(missing_at(url))
    assert said.startswith("the database service on 127.0.0.1:")
    assert "Connection refused" in said
    assert "hunter2" not in said


def test_a_database_that_is_not_there_is_named(databases: Databases) -> None:
    url = databases.new()
    databases.drop(url)
    said = str(missing_at(url))
    assert " refuses: database " in said
    assert said.endswith(" does not exist")


def test_a_database_without_tables_is_named(databases: Databases) -> None:
    url = databases.new()
    assert missing_at(url) == OLD
    databases.drop(url)


def test_whoever_waits_goes_on_when_the_tables_are_made(
    nowhere: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    found: list[bool] = []
    with caplog.at_level(logging.WARNING, "app.processes.readiness"):
        thread = Thread(target=lambda: found.append(wait_until_ready(nowhere.container(), Event())))
        thread.start()
        wait_until(lambda: NO_DATABASE in caplog.text)
        nowhere.run("migrate")
        thread.join(PATIENCE_S)
    assert found == [True]


def test_whoever_waits_ends_when_told_to(nowhere: Shell) -> None:
    stop = Event()
    stop.set()
    assert not wait_until_ready(nowhere.container(), stop)
    assert not wait_until_reached(nowhere.container(), stop)


def test_who_makes_the_tables_needs_only_the_database(nowhere: Shell) -> None:
    assert wait_until_reached(nowhere.container(), Event())
    assert [*nowhere.home.iterdir()] == []
