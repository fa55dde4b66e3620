"""`audit reconcile`: what it prints of an invoice and of a bank's statement."""

from pathlib import Path

import pytest

from tests.app.cli.shell import Shell


@pytest.fixture
def used(shell: Shell) -> Shell:
    """Two deposits."""
    organization = shell.new_organization()
    for reference, amount in (("INV-1", "5"), ("INV-2", "7.25")):
        shell.run("wallet", "deposit", organization, amount, "--reference", reference)
    return shell


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "bank.csv"
    path.write_bytes(
        "Konto;DE00\n\nBuchung;Zweck;Betrag\n"
        "1.3.;INV-1;5,00\n2.3.;Miete März;-900,00\n3.3.;INV-2;7,25\n".encode("cp1252")
    )
    return path


GERMAN = ("--reference", "Zweck", "--amount", "Betrag", "--encoding", "cp1252", "--deposits")


def test_a_statement_of_a_bank_agrees_with_the_deposits(used: Shell, bank: Path) -> None:
    told = used.json("audit", "reconcile", bank, *GERMAN)
    nothing = {"missing_here": [], "missing_there": [], "different": []}
    assert told == {"ok": True, "matched": 2, **nothing}
    assert used.run("audit", "reconcile", bank, *GERMAN).stdout.startswith("ok             yes\n")


def test_what_does_not_agree_is_told_and_fails(used: Shell, tmp_path: Path) -> None:
    file = tmp_path / "bank.csv"
    file.write_text("reference,amount\nINV-2,7.50\nINV-9,1.00\n,2.00\n")
    told = used.json("audit", "reconcile", file, "--deposits", status=1)
    both = {"there": "7.50", "here": "7.25"}
    assert (told["ok"], told["matched"]) == (False, 0)
    assert [each["line"] for each in told["missing_here"]] == [3, 4]
    assert [each["reference"] for each in told["missing_there"]] == ["INV-1"]
    (different,) = told["different"]
    place = {"line": 2, "position": different["position"], "reference": "INV-2"}
    amounts = {name: {"amount": amount, "currency": "USD"} for name, amount in both.items()}
    assert different == {**place, **amounts}
    printed = used.run("audit", "reconcile", file, "--deposits", status=1).stdout.splitlines()
    assert [line.split() for line in printed[6:10]] == [
        ["missing_here:"],
        ["LINE", "REFERENCE", "AMOUNT", "CURRENCY"],
        ["3", "INV-9", "1.00", "USD"],
        ["4", "-", "2.00", "USD"],
    ]
    assert printed[-1].split()[2:] == ["INV-2", "7.50", "USD", "7.25", "USD"]
    other = used.json("audit", "reconcile", file, "--deposits", "--month", "2020-01", status=1)
    assert other["missing_there"] == []


def test_a_payment_that_the_bank_took_back_is_no_deposit(used: Shell, tmp_path: Path) -> None:
    file = tmp_path / "bank.csv"
    for lines in ("INV-1,5.00\nINV-2,7.25\nINV-1,-5.00\n", "INV-2,7.25\nINV-1,-5.00\n"):
        file.write_text(f"reference,amount\nrent,-900\n{lines}")
        told = used.json("audit", "reconcile", file, "--deposits", status=1)
        assert (told["matched"], told["missing_here"], told["missing_there"]) == (1, [], [])
        assert [each["reference"] for each in told["different"]] == ["INV-1"]


def test_a_file_that_cannot_be_read_is_refused_line_by_line(used: Shell, tmp_path: Path) -> None:
    file = tmp_path / "invoice.csv"
    file.write_text("reference,amount\na,one\nb,two\n")
    refused = used.run("audit", "reconcile", file, "--provider", "far", status=1)
    assert refused.stdout == ""
    assert refused.stderr.splitlines() == [
        f"Error: line {line}, column amount: {text!r} is no amount"
        for line, text in ((2, "one"), (3, "two"))
    ]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ((), "--deposits"),
        (("--deposits", "--provider", "far"), "--deposits"),
        (("--deposits", "--month", "March"), "March"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(
    used: Shell, bank: Path, options: tuple[str, ...], named: str
) -> None:
    assert named in used.refusal("audit", "reconcile", bank, *options, status=2)
