"""`audit statement`, `balance` and `replay`: from the log alone, for people and for programs."""

import getpass
import json
import re
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from domain.months import next_month
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


def test_a_statement_has_a_line_for_each_kind(shell: Shell, organization: UUID, month: str) -> None:
    told = shell.json("audit", "statement", organization, month)
    assert told == {
        "organization": str(organization),
        "month": month,
        "currency": "USD",
        "opening_balance": "0.00",
        "lines": [
            {"kind": "deposit", "count": 1, "debit": "0.00", "credit": "5.00"},
            {"kind": "adjustment", "count": 1, "debit": "1.50", "credit": "0.00"},
        ],
        "closing_balance": "3.50",
        "first_sequence": 1,
        "last_sequence": 2,
        "first_position": told["first_position"],
        "last_position": told["last_position"],
        "final": False,
        "checkpoint": None,
    }
    printed = shell.run("audit", "statement", organization, month).stdout
    assert "closing_balance  3.50" in printed
    assert "adjustment  1      1.50   0.00" in printed


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


def test_what_is_sent_names_its_issuer_and_has_totals(
    shell: Shell, organization: UUID, month: str, tmp_path: Path
) -> None:
    shell = shell.having(ISSUER="Carriers & Sons, Harbour 1")
    own, page = (organization, month), tmp_path / "sent.html"
    shell.run("audit", "statement", *own, "--format", "html", "--out", page)
    told = page.read_text()
    assert told == shell.run("audit", "statement", *own, "--format", "html").stdout
    for shown in ("Carriers &amp; Sons, Harbour 1", "<strong>Acme</strong>", str(organization)):
        assert shown in told
    rows = [re.sub(r"<[^>]*>", " ", row).split() for row in told.splitlines()]
    assert ["Total", "2", "1.50", "5.00"] in rows
    assert ["Net", "(credit", "less", "debit)", "3.50"] in rows
    table = shell.run("audit", "statement", *own, "--format", "csv").stdout.splitlines()
    assert table[1:] == [
        f"{month},USD,opening_balance,,,,0.00",
        f"{month},USD,deposit,1,0.00,5.00,",
        f"{month},USD,adjustment,1,1.50,0.00,",
        f"{month},USD,closing_balance,,,,3.50",
        f"{month},USD,total,2,1.50,5.00,",
        f"{month},USD,net,,,,3.50",
    ]


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


def test_a_statement_that_does_not_exist_is_refused(
    shell: Shell, organization: UUID, month: str
) -> None:
    refusal = shell.refusal("audit", "statement", organization, next_month(month))
    assert "no statement" in refusal
    assert "no organization" in shell.refusal("audit", "statement", uuid4(), month)
    own = [organization, month]
    for wrong in (
        [organization],
        [],
        ["--all", month],
        [*own, "--out", "x"],
        [*own, "--format", "csv", "--json"],
    ):
        assert "--all YYYY-MM" in shell.refusal("audit", "statement", *wrong, status=2)


def test_the_balance_now_and_at_any_point(shell: Shell, organization: UUID) -> None:
    now = shell.json("audit", "balance", organization)
    assert now == {
        "organization": str(organization),
        "balance": "3.50",
        "currency": "USD",
        "position": now["position"],
    }
    before = shell.json("audit", "balance", organization, "--at", now["position"] - 1)
    assert (before["balance"], before["position"]) == ("5.00", now["position"] - 2)
    assert shell.json("audit", "balance", organization, "--at", "2100-01-01") == now
    assert "no wallet" in shell.refusal("audit", "balance", organization, "--at", "2020-01-01")
    assert "no organization" in shell.refusal("audit", "balance", uuid4())
    for wrong in ("yesterday", "2026-01-01T00:00", "-1", "2026-13-01", "9" * 5_000):
        shell.refusal("audit", "balance", organization, "--at", wrong, status=2)


def test_a_limit_that_is_set_moves_no_money(shell: Shell, organization: UUID) -> None:
    before = shell.json("audit", "balance", organization)
    shell.run("org", "set", organization, "--spending-limit", "100")
    assert shell.json("audit", "balance", organization) == before


def test_the_stream_is_replayed_in_order_with_who_made_it(shell: Shell, organization: UUID) -> None:
    whole = shell.json("audit", "replay")["data"]
    assert [each["position"] for each in whole] == sorted(each["position"] for each in whole)
    own = shell.json("audit", "replay", "--org", organization)["data"]
    assert own == [each for each in whole if each["organization"] == str(organization)]
    assert [(each["kind"], each["amount"], each["actor"]) for each in own] == [
        ("deposit", "5.00", f"os:{getpass.getuser()}"),
        ("adjustment", "1.50", f"os:{getpass.getuser()}"),
    ]
    place = own[1]["position"]
    assert shell.json("audit", "replay", "--from", place, "--to", place)["data"] == own[1:]
    assert shell.json("audit", "replay", "--to", "2020-01-01T00:00:00+02:00") == {"data": []}
    assert shell.json("audit", "replay", "--from", "2020-01-01")["data"] == whole
    printed = shell.run("audit", "replay", "--org", organization).stdout.splitlines()
    assert len(printed) == 2
    assert "-1.50" in printed[1]
