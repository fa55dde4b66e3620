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
        f"Error: {file}: line {line}, column amount: {text!r} is no amount"
        for line, text in ((2, "one"), (3, "two"))
    ]


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
