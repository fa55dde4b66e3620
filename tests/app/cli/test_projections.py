"""`projections`: how far the followers are, and rebuilds, at a terminal too."""

import os
import pty

import pytest

from projections.audit.tree_builder import TreeBuilder
from tests.app.cli.shell import TIMEOUT_S, Shell


def test_a_read_model_that_stopped_is_told_by_whoever_reads(shell: Shell) -> None:
    organization = shell.new_organization()
    shell.run("org", "list")
    shell.rewrite("DROP TABLE transactions", file="service-views.db")
    shell.run("wallet", "deposit", organization, "1", "--reference", "r")
    listed = shell.run("org", "list", "--json")
    assert listed.stdout.startswith('{"data": [{"id"')
    assert '"balance": "1.00"' in listed.stdout
    status = {each["name"]: each for each in shell.json("projections", "status")["data"]}
    stopped = status["transactions"]
    assert stopped["position"] in {3, 4}, "before the entry, which is event 5"
    told = f"transactions stopped at {stopped['position']}: {stopped['failure']}"
    assert listed.stderr == f"Warning: {told}\n"
    assert "wallet.deposited" in stopped["failure"]
    shell.run("projections", "rebuild", "transactions")
    assert shell.run("org", "list", "--json").stderr == ""
    assert shell.json("audit", "verify")["ok"] is True


def test_whoever_makes_the_tree_anew_holds_up_nobody(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TreeBuilder, "restart", lambda *_: len(str(shell.new_organization())))
    shell.run("projections", "rebuild", "audit_tree")


def test_a_terminal_sees_how_far_it_is_and_programs_see_one_object(shell: Shell) -> None:
    shell.new_organization()
    ours, theirs = pty.openpty()
    with shell.start("projections", "rebuild", "wallets", "--json", stderr=theirs) as process:
        out, _ = process.communicate(timeout=TIMEOUT_S)
    os.close(theirs)
    drawn = os.read(ours, 4_096).decode()
    os.close(ours)
    assert "Building wallets: 3 of 3" in drawn
    assert drawn.endswith("\r\033[K")
    assert out == '{"data": [{"name": "wallets", "position": 3}]}\n'
    assert process.returncode == 0
