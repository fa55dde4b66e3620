"""A process waits for its installation, says what is missing, and can be told to end meanwhile."""

import logging
from threading import Event, Thread
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from app.processes.doctor import examine
from app.processes.readiness import wait_until_reached, wait_until_ready, what_is_missing
from app.watch.trouble import trouble_of
from domain.errors import ServiceUnavailable
from tests.app.cli.shell import Shell
from tests.installation import PATIENCE_S, Process, postgresql_only, wait_until

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


def deposit_twice(process: Process, organization: UUID) -> None:
    for _ in range(2):
        process.accounts.move("deposit", organization, 1, uuid4().hex, process.cause())


@postgresql_only("SQLite has no sequence that could be below the newest position")
def test_a_sequence_that_is_not_above_the_log_sells_nothing_and_says_what_to_run(
    process: Process,
) -> None:
    organization = process.organization("5.00")
    process.projector.catch_up()
    for wrong in ("SELECT setval('{}', 1)", "ALTER SEQUENCE {} CACHE 20"):
        with process.views.writing() as connection:
            connection.execute(text(wrong.format("log_events_notification_id_seq")))
        head = process.log.head()
        with pytest.raises(ServiceUnavailable) as refused:
            deposit_twice(process, organization)
        said = trouble_of(refused.value, "here")
        assert said.startswith("the database here says: the sequence of the log gives positions")
        assert said.endswith(process.log.fault() or "")
        assert what_is_missing(process) == process.log.fault()
        assert process.log.fault() in {each.message for each in examine(process)}
        assert process.log.head() in {head, head + 2}
        with process.views.writing() as connection:
            connection.execute(text(said.partition("run: ")[2]))
        assert what_is_missing(process) is None
