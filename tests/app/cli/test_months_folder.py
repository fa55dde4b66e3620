"""`months folder`: what it says, and that it ends with 1 when something does not hold."""

import filecmp
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.processes import month_folder
from domain.cause import Cause
from tests.app.cli.shell import Shell
from tests.installation import SetClock
from tests.tidy.source import ROOT

MONTH = "2026-02"


@pytest.fixture
def closed(shell: Shell) -> Shell:
    """An organization has paid in, its month is closed and signed."""
    clock = SetClock(datetime(2026, 2, 20, tzinfo=UTC))
    shell = shell.having(CHECKPOINT_LAG_S="0", ISSUER="We")
    container = shell.container(clock)
    container.shared_clock = clock
    cause = Cause(clock(), "request-1")
    made = container.accounts.register_organization(
        cause, name="Acme", price_micros=None, monthly_link_fee_micros=0, with_wallet=True
    )
    container.accounts.deposit(made.id, 5_000_000, "bank-1", cause)
    clock.forward(days=10)
    container.month_end.close(MONTH, Cause(clock(), "request-2"))
    container.tree_keeper.catch_up()
    container.checkpoints.run()
    container.close()
    return shell


def test_no_clock_zone_language_or_order_of_chance_is_in_it(closed: Shell, tmp_path: Path) -> None:
    here, there = tmp_path / "below" / "here", tmp_path / "there"
    assert closed.run("months", "folder", MONTH, here).exit_code == 0
    elsewhere = {"TZ": "Pacific/Kiritimati", "LC_ALL": "de_DE.UTF-8", "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-m", "app", "months", "folder", MONTH, there]
    environment = {**os.environ, **closed.environment, **elsewhere}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    compared = filecmp.dircmp(here, there)
    assert (compared.left_only, compared.right_only, compared.diff_files) == ([], [], [])
    assert closed.json("months", "folder", MONTH, there)["unchanged"] is True


def test_it_ends_with_1_when_the_verifier_says_nothing(
    closed: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(month_folder, "VERIFIER", tmp_path / "lost.py")
    told = closed.json("months", "folder", MONTH, tmp_path / "books", status=1)
    assert told["ok"] is False
    verdict = (tmp_path / "books" / "verdict.txt").read_text()
    assert "lost.py" in verdict
    assert "FAILED   0 of 1 statements are those that it computes" in verdict
