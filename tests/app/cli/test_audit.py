"""`audit`: what verifies, balances, leaves and reconciles, and what is refused."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.cli.output import written
from tests.app.cli.shell import TIMEOUT_S, Shell


@pytest.fixture
def used(shell: Shell) -> Shell:
    """Five events: the ledger, an organization, its wallet; a deposit brings two more."""
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "5", "--reference", "r")
    return shell


def test_an_amount_that_was_rewritten_leaves_a_difference(used: Shell) -> None:
    used.rewrite(
        "UPDATE stored_events SET state = replace(state, '\"amount_micros\":5000000',"
        " '\"amount_micros\":5000001') WHERE topic = 'wallet.deposited'"
    )
    told = used.json("audit", "trial-balance", status=1)
    month = used.json("audit", "replay")["data"][0]["charged_at"][:7]
    assert used.json("audit", "trial-balance", "--month", month, status=1)["ok"] is False
    for command in ("trial-balance", "margin"):
        assert "has not begun" in used.refusal("audit", command, "--month", "2099-01")
    difference = [{"amount": "0.000001", "currency": "USD"}]
    assert (told["ok"], told["differences"]) == (False, difference)


def test_a_balance_is_of_a_position_or_a_moment(shell: Shell) -> None:
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "5", "--reference", "r")
    shell.run("wallet", "adjust", organization, "-1", "--reference", "c", "--reason", "a mistake")
    shell.run("wallet", "deposit", shell.new_organization(), "7", "--reference", "r")
    now = shell.json("audit", "balance", organization)
    before = shell.json("audit", "balance", organization, "--at", now["position"] - 1)
    assert (before["balance"], before["position"]) == ("5.00", now["position"] - 2)
    assert "no wallet" in shell.refusal("audit", "balance", organization, "--at", "2020-01-01")
    for wrong in ("yesterday", "2026-01-01T00:00", "-1", "2026-13-01", "9" * 5_000):
        shell.refusal("audit", "balance", organization, "--at", wrong, status=2)


def test_a_part_has_the_tree_before_it_beside_it_and_is_not_imported(
    used: Shell, tmp_path: Path
) -> None:
    whole = used.run("audit", "export").stdout_bytes.splitlines(keepends=True)
    part = tmp_path / "part.jsonl"
    told = used.json("audit", "export", "--from", 4, "--to", 4, "--out", part)
    assert (told["events"], told["position"], told["size"]) == (1, 4, 4)
    assert part.read_bytes() == whole[3]
    before = json.loads((tmp_path / "part.jsonl.range.json").read_bytes())
    assert (before["size"], len(before["hashes"])) == (3, 2)
    assert "is a part" in used.refusal("audit", "import", part)
    assert used.refusal("audit", "import", "") == ".: Is a directory"
    used.run("audit", "export", "--out", part)
    assert not (tmp_path / "part.jsonl.range.json").exists(), "the whole log is no part"


def test_what_is_no_file_takes_the_export_and_stays_what_it_is(used: Shell, tmp_path: Path) -> None:
    whole = used.run("audit", "export").stdout_bytes
    link, target, fifo = (tmp_path / name for name in ("link", "target", "fifo"))
    link.symlink_to(target)
    used.run("audit", "export", "--out", link)
    assert link.is_symlink()
    assert target.read_bytes() == whole
    os.mkfifo(fifo)
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(fifo.read_bytes)
        used.run("audit", "export", "--out", fifo)
        assert read.result(TIMEOUT_S) == whole
    assert fifo.is_fifo()


def test_two_who_write_a_file_at_once_each_write_all_of_it(tmp_path: Path) -> None:
    out = tmp_path / "log.jsonl"
    with written(out) as first:
        with written(out) as second:
            second.write(b"second"), first.write(b"first"), first.flush()
        assert out.read_bytes() == b"second"
    assert out.read_bytes() == b"first"
    assert [*tmp_path.iterdir()] == [out]


def test_a_table_holds_what_is_selected(used: Shell) -> None:
    for more, count in (((), 2), (("--from", 9), 1)):
        assert used.run("audit", "export", "--format", "csv", *more).stdout.count("\n") == count
    for command, since, until in (("replay", "2026-02-01", "2026-01-31"), ("export", 3, 2)):
        line = ("audit", command, "--from", since, "--to", until)
        assert "--from is after --to" in used.refusal(*line, status=2)


def test_two_organizations_with_one_reference_do_not_make_up_for_each_other(
    shell: Shell, tmp_path: Path
) -> None:
    owner, other = shell.new_organization(), shell.new_organization()
    for whose, named, paid in ((owner, "INV-1", 5), (owner, "INV-2", 7.25), (other, "INV-1", 7)):
        shell.run("wallet", "deposit", whose, paid, "--reference", named)
    file = tmp_path / "bank.csv"
    for lines, matched, *amounts in (
        ("INV-1,5.00\nINV-1,7.00\n", 3, [], [], []),
        ("INV-1,6.00\nINV-1,6.00\n", 1, ["12.00"], ["5.00", "7.00"], []),
        ("INV-1,12.00\n", 1, ["12.00"], ["5.00", "7.00"], []),
        ("INV-1,5.00\nINV-1,5.00\nINV-1,7.00\n", 2, [], [], ["5.00"]),
    ):
        file.write_text(f"reference,amount\nINV-2,7.25\n{lines}")
        told = shell.json("audit", "reconcile", file, "--deposits", status=int(any(amounts)))
        different = [each["here"] for each in told["different"]]
        found = (told["missing_here"], told["missing_there"], different)
        assert [[each["amount"] for each in some] for some in found] == amounts
        assert told["matched"] == matched


HEADS = {
    "twilio": ("category,start_date,price,price_unit", "lookups,2026-03-01,0.005,usd"),
    "telnyx": ("start_date,type,total_cost,currency", "2026-03-01,CARRIER,0.005,USD"),
    "esimgo": ("orderReference,total,currency", "order-1,0.005,USD"),
}


def test_the_fields_of_a_provider_need_no_options(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "invoice.csv"
    dates = ("2026-03-01", "2026-03", "order-1")
    for (provider, lines), date in zip(HEADS.items(), dates, strict=True):
        file.write_text("\n".join(lines))
        command = ("audit", "reconcile", file, "--provider", provider)
        (line,) = shell.json(*command, status=1)["missing_here"]
        assert (line["reference"], line["amount"]) == (date, "0.005")
        assert "'other'" in shell.refusal(*command, "--reference", "other")
        (line,) = shell.json(*command, "--currency", "GBP", status=1)["missing_here"]
        assert line["currency"] == "GBP"
