"""The bank's statement and the invoices of providers are booked by the command that compares."""

from pathlib import Path
from typing import Any
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


def accounts(shell: Shell) -> dict[str, str]:
    told = shell.json("audit", "trial-balance")
    assert told["ok"]
    return {each["account"]: each["debit"] + "/" + each["credit"] for each in told["data"]}


def test_a_line_that_agrees_is_booked_once_and_taken_back_by_its_file(
    shell: Shell, owner: UUID
) -> None:
    shell.run(
        *("wallet", "payout", owner, "20", "--reference", "out-1", "--reason", "they leave"),
        *("--value-date", "2026-02-27"),
    )
    file = a_file(
        shell,
        "SEPA EREF+BANK-1;50.00;27.02.2026",
        "bank-2;6.00;2026-02-27",
        "out-1;-20.00;2026-02-27",
        "rent;-9;2026-02-27",
    )
    reconcile = ("audit", "reconcile", file)
    told = shell.json(*reconcile, *BANK, status=1)
    assert (told["matched"], told["booked"], told["unchanged"]) == (2, 2, 0)
    assert [each["reference"] for each in told["missing_there"]] == ["=bank-2"]
    again = shell.json(*reconcile, *BANK, status=1)
    assert (again["booked"], again["unchanged"]) == (0, 2)
    assert accounts(shell) | {"Liabilities:Wallets": ""} == {
        "Assets:Bank": "30.00/0.00",
        "Assets:Deposits": "7.00/0.00",
        "Liabilities:Wallets": "",
    }
    whole = a_file(shell, "=bank-2;7.00;27.02.2026")
    more = shell.json("audit", "reconcile", whole, *BANK, status=1)
    assert (more["booked"], more["unchanged"]) == (1, 0)
    assert accounts(shell)["Assets:Deposits"] == "0.00/0.00"
    back = (*reconcile, "--deposits", "--take-back", "--value-date", "2026-03-01")
    undone = shell.json(*back, status=1)
    assert (undone["taken_back"], undone["unchanged"]) == (1, 0), "the file holds bank-2 alone now"
    assert accounts(shell)["Assets:Deposits"] == "7.00/0.00"
    assert shell.json("audit", "verify")["ok"]
    ledger = shell.run("audit", "export", "--format", "beancount").stdout
    assert 'reference: "=bank-2"' in ledger


@pytest.mark.usefixtures("owner")
def test_an_invoice_asks_for_more_than_was_bought_only_when_that_is_accepted(
    shell: Shell,
) -> None:
    file = a_file(shell, "addon-9,2.50,", head="reference,amount,Tag")
    line = ("audit", "reconcile", file, *INVOICE)
    told = shell.json(*line, "--book", status=1)
    assert (told["amount"], told["difference"]) == ("2.50", "2.50")
    assert (told["booked"], told["unchanged"]) == (0, 0)
    shell.json(*line, "--book", "--accept", "-2.50", status=1)
    assert "Assets:Bank" not in accounts(shell)
    told = shell.json(*line, "--book", "--accept", "2.50", status=1)
    assert (told["booked"], [each["reference"] for each in told["missing_here"]]) == (
        1,
        ["addon-9"],
    )
    assert accounts(shell)["Liabilities:Providers:Simulated"] == "0.00/2.50"
    bill = a_file(shell, "Invoice inv 7, thanks;-2.50;28.02.2026")
    assert shell.json("audit", "reconcile", bill, *BANK, status=1)["booked"] == 1
    now = accounts(shell)
    assert now["Liabilities:Providers:Simulated"] == "0.00/0.00"
    assert (now["Assets:Bank"], now["Expenses:Providers:Simulated"]) == ("0.00/2.50", "2.50/0.00")
    file = a_file(shell, "addon-9,2.50,", head="reference,amount,Tag")
    assert "so take back the payment first: INV-7" in shell.refusal(*line, "--take-back")
    assert shell.json("audit", "verify")["ok"]
    assert shell.json("audit", "margin")["total"]["cost"] == "2.50"


@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ("31.02.2026", "line 2, column Tag: '31.02.2026' is no date such as 2026-01-31"),
        ("02/27/2026", "line 2, column Tag: '02/27/2026' is no date"),
        ("", "line 2, column Tag: '' is no date"),
        ("=1+1\x07", "line 2, column Tag: '=1+1\\x07' is no date"),
    ],
)
def test_what_is_no_date_is_told_with_its_line_and_column(
    shell: Shell, cells: str, why: str
) -> None:
    file = a_file(shell, f"bank-1;50.00;{cells}")
    assert why in shell.refusal("audit", "reconcile", file, *BANK)
    assert "Assets:Bank" not in accounts(shell)


@pytest.mark.usefixtures("owner")
def test_what_does_not_go_together_is_refused(shell: Shell) -> None:
    file = a_file(shell, "bank-1;50.00;27.02.2026")
    dated: Any = ("--value-date", "2026-02-27")
    for line in (
        ("--deposits", "--book"),
        ("--deposits", "--book", "--invoice", "INV-7", *dated),
        ("--provider", "offline", "--book", *dated),
        (*INVOICE[:4], "--book"),
        (*INVOICE[:2], "--invoice", "INV\n7", "--book", *dated),
        (*INVOICE, "--book", "--accept", "0"),
    ):
        shell.refusal("audit", "reconcile", file, *line, status=2)
    assert "Tag2" in shell.refusal("audit", "reconcile", file, *BANK[:3], "Tag2")


@pytest.mark.usefixtures("owner")
def test_only_who_has_the_right_to_audit_books(shell: Shell) -> None:
    file = a_file(shell, "bank-1;50.00;27.02.2026", "=bank-2;7;27.02.2026")
    line, staff = ("audit", "reconcile", file), dict[str, Shell]()
    for right in ("keys", "money", "audit"):
        made = staff.get("keys", shell).json("operator", "create", right, "--may", right)
        staff[right] = shell.having(OPERATOR_KEY=made["key"])
    for wrong in (shell, staff["money"], staff["keys"]):
        wrong.refusal(*line, *BANK)
        wrong.refusal(*line, "--deposits", "--take-back", "--value-date", "2026-02-27")
        assert wrong.json(*line, "--deposits")["ok"]
    assert staff["audit"].json(*line, *BANK)["booked"] == 2
    assert shell.json("audit", "verify")["ok"]
