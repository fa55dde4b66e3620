"""A process waits for its installation, says what is missing, and can be told to end meanwhile."""

import logging
from threading import Event, Thread

import pytest

from app.processes.readiness import wait_until_reached, wait_until_ready, what_is_missing
from tests.app.cli.shell import Shell
from tests.installation import PATIENCE_S, wait_until

NO_DATABASE = "there is no database at "


def test_read_models_of_another_release_are_named(shell: Shell) -> None:
    container = shell.container()
    wallets = container.wallets
    wallets.version += 1
    said = what_is_missing(container)
    assert said == f"read models of another release; run: python -m app migrate ({wallets.name}, …)"


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
