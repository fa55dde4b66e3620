"""The bank's statement and the invoices of providers are booked by the command that compares."""

from pathlib import Path
from uuid import UUID

import pytest

from tests.app.cli.shell import Shell

BANK = ("--deposits", "--book", "--date-column", "Tag")
INVOICE = ("--provider", "simulated", "--invoice", "INV-7", "--value-date", "2026-02-27")


@pytest.fixture
def owner(shell: Shell) -> UUID:
    made = shell.new_organization()
    shell.run("wallet", "deposit", made, "50", "--reference", "bank-1")
    shell.run("wallet", "deposit", made, "7", "--reference", "=bank-2")
    return made


def a_file(shell: Shell, *lines: str, head: str = "reference;amount;Tag") -> Path:
    path = shell.home / "bank.csv"
    path.write_text("\n".join([head, *lines, ""]))
    return path


@pytest.mark.usefixtures("owner")
def test_what_does_not_go_together_is_refused(shell: Shell) -> None:
    file = a_file(shell, "bank-1;50.00;27.02.2026")
    for line in (
        ("--deposits", "--book"),
        ("--deposits", "--book", *INVOICE[2:]),
        ("--provider", "offline", "--book", *INVOICE[4:]),
        INVOICE[:4],
        (*INVOICE[:4], "--book"),
        (*INVOICE[:2], "--invoice", "INV\n7", "--book", *INVOICE[4:]),
        (*INVOICE, "--book", "--accept", "0"),
        (*INVOICE, "--book", "--take-back"),
        (*INVOICE, "--date-column", "Tag"),
        (*INVOICE[:2], "--accept", "1"),
        ("--deposits", "--accept", "1"),
        ("--deposits", "--by", "day"),
        ("--deposits", "--currency", "EURO"),
        ("--deposits", "--currency", "EUR", "--currency-column", "Tag"),
    ):
        shell.refusal("audit", "reconcile", file, *line, status=2)
    compared = ("audit", "reconcile", file, "--deposits")
    assert shell.json(*compared, "--currency", "usd", status=1)["matched"] == 1
    assert "has not begun" in shell.refusal(*compared, "--month", "2100-01")
    assert "Tag2" in shell.refusal("audit", "reconcile", file, *BANK[:3], "Tag2")
    wrong = a_file(shell, "a;one;", "b;two;")
    assert shell.run("audit", "reconcile", wrong, *BANK, status=1).stderr.count("no amount") == 2


@pytest.mark.usefixtures("owner")
def test_only_who_has_the_right_to_audit_books(shell: Shell) -> None:
    line = ("audit", "reconcile", a_file(shell, "bank-1;50.00;27.02.2026"), "--deposits")
    made = shell.json("operator", "create", "boss", "--may", "keys,money")
    boss = shell.having(OPERATOR_KEY=made["key"])
    for booking in ("--book", "--take-back"):
        assert "right audit" in boss.refusal(*line, booking, "--value-date", "2026-02-27")
    assert shell.json(*line, status=1)["matched"] == 1
