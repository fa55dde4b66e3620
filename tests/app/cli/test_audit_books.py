"""`audit statement`, `balance` and `replay`: from the log alone, for people and for programs."""

import json
from pathlib import Path
from uuid import UUID

import pytest

from tests.app.cli.shell import Shell
from tests.installation import this_month


@pytest.fixture
def month() -> str:
    return this_month()


@pytest.fixture
def organization(shell: Shell, month: str) -> UUID:  # noqa: ARG001  # It must not end meanwhile.
    """An organization whose wallet has been paid into and corrected, beside another one."""
    made = shell.new_organization()
    shell.run("wallet", "deposit", made, "5", "--reference", "r")
    shell.run("wallet", "adjust", made, "-1.5", "--reference", "c", "--reason", "a mistake")
    shell.run("wallet", "deposit", shell.new_organization(), "7", "--reference", "r")
    return made


def test_all_statements_of_a_month_go_to_a_directory(
    shell: Shell, organization: UUID, month: str, tmp_path: Path
) -> None:
    out = tmp_path / "books" / "now"
    told = shell.json("audit", "statement", "--all", month, "--out", out)
    assert told == {"month": month, "final": False, "statements": 2, "out": str(out)}
    files = {file.name: json.loads(file.read_text()) for file in out.iterdir()}
    assert len(files) == 2
    one = shell.json("audit", "statement", organization, month)
    assert files[f"{organization}-{month}.json"] == one


@pytest.mark.parametrize("form", ["html", "csv"])
def test_all_that_is_sent_is_what_each_would_be(
    shell: Shell, organization: UUID, month: str, tmp_path: Path, form: str
) -> None:
    told = shell.json("audit", "statement", "--all", month, "--out", tmp_path, "--format", form)
    assert told["statements"] == 2
    one = tmp_path / "one"
    shell.run("audit", "statement", organization, month, "--format", form, "--out", one)
    assert (tmp_path / f"{organization}-{month}.{form}").read_bytes() == one.read_bytes()
    assert str(one) in shell.refusal("audit", "statement", "--all", month, "--out", one)


def test_a_balance_is_of_a_position_or_a_moment(shell: Shell, organization: UUID) -> None:
    now = shell.json("audit", "balance", organization)
    before = shell.json("audit", "balance", organization, "--at", now["position"] - 1)
    assert (before["balance"], before["position"]) == ("5.00", now["position"] - 2)
    assert "no wallet" in shell.refusal("audit", "balance", organization, "--at", "2020-01-01")
    for wrong in ("yesterday", "2026-01-01T00:00", "-1", "2026-13-01", "9" * 5_000):
        shell.refusal("audit", "balance", organization, "--at", wrong, status=2)
