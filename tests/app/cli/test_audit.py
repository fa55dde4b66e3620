"""`audit verify`: its report, its exit status, and the position that it names."""

import pytest

from tests.app.cli.shell import Shell


@pytest.fixture
def used(shell: Shell) -> Shell:
    """Five events: the ledger, an organization, its wallet; a deposit brings two more."""
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "5", "--reference", "r")
    return shell


def test_a_log_that_was_cut_short_is_found_though_what_is_left_is_right(used: Shell) -> None:
    used.run("org", "list")
    used.rewrite("DELETE FROM stored_events WHERE rowid >= 4")
    report = used.json("audit", "verify", status=1)
    assert report["failures"][0]["position"] == 4
    reason = report["failures"][0]["reason"]
    assert "up to 5" in reason
    assert f"position 4: {reason}\n" in used.run("audit", "verify", status=1).stdout
    for command in (("org", "list"), ("doctor",)):
        said = used.run(*command, status=1)
        assert "look at: python -m app audit verify" in said.stdout + said.stderr, command
