"""`audit verify`: its report, its exit status, and the position that it names."""

import sqlite3
from pathlib import Path

import pytest

from tests.app.cli.shell import Shell


@pytest.fixture
def used(shell: Shell) -> Shell:
    """Five events: the ledger, an organization, its wallet; a deposit brings two more."""
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "5", "--reference", "r")
    return shell


def change(file: Path, statement: str) -> None:
    with sqlite3.connect(file) as connection:
        assert connection.execute(statement).rowcount == 1
    connection.close()


def test_a_missing_event_is_found_where_it_shows(used: Shell) -> None:
    change(used.database, "DELETE FROM stored_events WHERE topic = 'wallet.opened'")
    report = used.json("audit", "verify", status=1)
    assert report["ok"] is False
    assert report["failures"][0]["position"] > 3
    assert report["failures"][0]["reason"]
    printed = used.run("audit", "verify", status=1)
    assert f"position {report['failures'][0]['position']}: " in printed.stdout
    assert printed.stderr == ""


def test_a_log_that_was_cut_short_is_found_though_what_is_left_is_right(used: Shell) -> None:
    used.run("org", "list")
    change(used.database, "DELETE FROM stored_events WHERE rowid = 5")
    change(used.database, "DELETE FROM stored_events WHERE rowid = 4")
    report = used.json("audit", "verify", status=1)
    assert report["failures"][0]["position"] == 4
    assert "up to 5" in report["failures"][0]["reason"]
    for command in (("org", "list"), ("doctor",)):
        said = used.run(*command, status=1)
        assert "look at: python -m app audit verify" in said.stdout + said.stderr, command
