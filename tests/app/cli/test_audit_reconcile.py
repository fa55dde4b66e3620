"""`audit reconcile`: what it prints of an invoice and of a bank's statement."""

from pathlib import Path
from uuid import UUID

import pytest

from domain.cause import Cause
from domain.lookups.single import LookupRequest
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
    nothing = {"missing_here": [], "missing_there": [], "different": [], "left_over": []}
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
    assert [line.split() for line in printed[7:11]] == [
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


@pytest.mark.parametrize(
    ("lines", "matched", "there", "here", "different"),
    [
        ("INV-1,5.00\nINV-1,7.00\n", 3, [], [], []),
        ("INV-1,6.00\nINV-1,6.00\n", 1, ["12.00"], ["5.00", "7.00"], []),
        ("INV-1,12.00\n", 1, ["12.00"], ["5.00", "7.00"], []),
        ("INV-1,5.00\nINV-1,5.00\nINV-1,7.00\n", 2, [], [], ["5.00"]),
    ],
)
def test_two_organizations_with_one_reference_do_not_make_up_for_each_other(  # noqa: PLR0913  # The file, and what it tells.
    used: Shell,
    tmp_path: Path,
    lines: str,
    matched: int,
    there: list[str],
    here: list[str],
    different: list[str],
) -> None:
    used.run("wallet", "deposit", used.new_organization(), "7", "--reference", "INV-1")
    file = tmp_path / "bank.csv"
    file.write_text(f"reference,amount\nINV-2,7.25\n{lines}")
    wrong = bool(there or here or different)
    told = used.json("audit", "reconcile", file, "--deposits", status=int(wrong))
    assert told["matched"] == matched
    assert [each["amount"] for each in told["missing_here"]] == there
    assert [each["amount"] for each in told["missing_there"]] == here
    assert [each["here"]["amount"] for each in told["different"]] == different


def test_a_file_that_cannot_be_read_is_refused_line_by_line(used: Shell, tmp_path: Path) -> None:
    file = tmp_path / "invoice.csv"
    file.write_text("reference,amount\na,one\nb,two\n")
    refused = used.run("audit", "reconcile", file, "--provider", "simulated", status=1)
    assert refused.stdout == ""
    assert refused.stderr.splitlines() == [
        f"Error: line {line}, column amount: {text!r} is no amount"
        for line, text in ((2, "one"), (3, "two"))
    ]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ((), "--deposits"),
        (("--deposits", "--provider", "simulated"), "--deposits"),
        (("--provider", "twillio"), "'twilio'"),
        (("--deposits", "--month", "March"), "March"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(
    used: Shell, bank: Path, options: tuple[str, ...], named: str
) -> None:
    assert named in used.refusal("audit", "reconcile", bank, *options, status=2)


HEADS = {
    "twilio": ("category,start_date,price,price_unit", "lookups,2026-03-01,0.005,usd"),
    "telnyx": ("start_date,type,total_cost,currency", "2026-03-01,CARRIER,0.005,USD"),
    "esimgo": ("orderReference,total,currency", "order-1,0.005,USD"),
}


@pytest.mark.parametrize("provider", HEADS)
def test_the_fields_of_a_provider_need_no_options(
    shell: Shell, tmp_path: Path, provider: str
) -> None:
    file = tmp_path / "invoice.csv"
    file.write_text("\n".join(HEADS[provider]))
    told = shell.json("audit", "reconcile", file, "--provider", provider, status=1)
    (line,) = told["missing_here"]
    date = {"twilio": "2026-03-01", "telnyx": "2026-03", "esimgo": "order-1"}
    assert (line["reference"], line["amount"]) == (date[provider], "0.005")
    other = ("--reference", "other")
    refused = shell.refusal("audit", "reconcile", file, "--provider", provider, *other)
    assert "'other'" in refused


def test_lookups_agree_with_an_invoice_by_day(shell: Shell, tmp_path: Path) -> None:
    shell = shell.having(COST_PER_LOOKUP="offline=0.005 USD", PRICE_PER_LOOKUP="0.01")
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "5", "--reference", "r")
    container = shell.container()
    request = LookupRequest(UUID(str(organization)), "+14155550100", 10_000, "USD", None)
    container.single_lookup.run(request, Cause(at := container.clock(), "test"))
    container.close()
    file = tmp_path / "usage.csv"
    file.write_text(f"day,what,price\n{at:%Y-%m-%d},lookups,0.005\n{at:%Y-%m-%d},sms,9\n")
    columns = ("--reference", "day", "--amount", "price", "--by", "day", "--provider", "offline")
    assert (
        shell.json("audit", "reconcile", file, *columns, "--only", "what=lookups")["matched"] == 1
    )
    assert not shell.json("audit", "reconcile", file, *columns, status=1)["ok"]
    assert "--only" in shell.refusal("audit", "reconcile", file, "--only", "what", status=2)
