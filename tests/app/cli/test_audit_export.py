"""`audit export` and `audit import`: what is written where, and what is refused."""

import csv
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.app.cli.shell import TIMEOUT_S, Shell


@pytest.fixture
def used(shell: Shell) -> Shell:
    """Five events."""
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "5", "--reference", "r")
    return shell


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


def test_a_table_holds_every_transaction_and_no_formula(used: Shell, tmp_path: Path) -> None:
    (organization,) = (each["id"] for each in used.json("org", "list")["data"])
    reason = "=HYPERLINK(1) – over"
    adjust = ("wallet", "adjust", organization, "-1.5", "--reference", "c", "--reason", reason)
    used.run(*adjust)
    table = used.run("audit", "export", "--format", "csv").stdout_bytes.decode()
    deposit, adjustment = csv.DictReader(table.splitlines())
    replayed = used.json("audit", "replay")["data"]
    for row, entry in zip((deposit, adjustment), replayed, strict=True):
        assert row["organization"] == organization
        for name in ("id", "kind", "amount", "direction", "balance_after", "charged_at", "actor"):
            assert row[name] == entry[name]
    assert adjustment["description"] == f"'{reason}", "a spreadsheet takes it for a text"
    part = tmp_path / "part.csv"
    used.run("audit", "export", "--format", "csv", "--from", deposit["position"], "--out", part)
    assert part.read_bytes() == table.encode()
    last = used.run("audit", "export", "--format", "csv", "--from", adjustment["position"]).stdout
    assert [*csv.DictReader(last.splitlines())] == [adjustment]
