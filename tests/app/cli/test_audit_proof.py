"""`audit prove` convinces somebody who has only a key; whatever is changed in it, it does not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.app.cli.shell import Shell

Proof = dict[str, Any]


@pytest.fixture(scope="module")
def proved(migrated_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Proof, str]:
    """A proof of the third of five deposits, and the verifier key."""
    home = tmp_path_factory.mktemp("proved")
    shutil.copytree(migrated_home, home, dirs_exist_ok=True)
    shell = Shell(home).having(CHECKPOINT_LAG_S="0")
    organization = shell.new_organization()
    for number in range(5):
        amount = f"{number + 1}.50"
        shell.run("wallet", "deposit", organization, amount, "--reference", f"bank-{number}")
    entries = shell.json("audit", "replay")["data"]
    shell.run("keys", "rotate")
    proof = shell.json("audit", "prove", entries[2]["id"])
    (line,) = (key["verifier"] for key in shell.json("keys", "list")["data"] if key["verifier"])
    facts = {name: value for name, value in entries[2].items() if name in proof["transaction"]}
    assert proof["transaction"] == facts
    return proof, line


def checked(shell: Shell, proof: Proof, *options: str, ok: bool) -> str:
    file = shell.home / "proof.json"
    file.write_text(json.dumps(proof), "utf-8")
    told = shell.json("audit", "check", file, *options, status=0 if ok else 1)
    assert told["ok"] is ok
    reason: str = told["reason"]
    return reason


def test_a_proof_is_checked_where_there_is_no_database(
    nowhere: Shell, proved: tuple[Proof, str]
) -> None:
    proof, line = proved
    assert [*proof] == ["transaction", "event", "index", "path", "checkpoint"]
    assert "signed" in checked(nowhere, proof, "--key", line, ok=True)
    assert not nowhere.database.exists()
    assert "is not known here" in checked(nowhere, proof, ok=False)


def swap(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


CHANGES: dict[str, tuple[Callable[[Proof], object], str]] = {
    "amount": (lambda p: p["transaction"].update(amount="3000.50"), "amount of the transaction"),
    "time": (
        lambda p: p["transaction"].update(charged_at="2026-01-01T00:00:00.000Z"),
        "charged_at",
    ),
    "balance": (lambda p: p["transaction"].update(balance_after="0.00"), "balance_after"),
    "sequence": (
        lambda p: p["transaction"].update(sequence=float(p["transaction"]["sequence"])),
        "sequence",
    ),
    "more": (lambda p: p["transaction"].update(paid=True), "paid"),
    "less": (lambda p: p["transaction"].pop("kind"), "kind"),
    "state": (
        lambda p: p["event"].update(state=swap(p["event"]["state"], "3500000", "3500001")),
        "does not lead",
    ),
    "position": (lambda p: p["event"].update(position=p["event"]["position"] + 1), "does not lead"),
    "index": (lambda p: p.update(index=p["index"] + 1), "does not lead"),
    "negative index": (lambda p: p.update(index=-1), "does not lead"),
    "path": (lambda p: p["path"].reverse(), "does not lead"),
    "shorter path": (lambda p: p["path"].pop(), "does not lead"),
    "root": (lambda p: p["checkpoint"].update(root="0" * 64), "what is said of the checkpoint"),
    "signed time": (
        lambda p: p["checkpoint"].update(at="2020-01-01T00:00:00.000Z"),
        "what is said of the checkpoint",
    ),
    "note": (
        lambda p: p["checkpoint"].update(note=swap(p["checkpoint"]["note"], "position", "place")),
        "no proof",
    ),
    "signed size": (
        lambda p: p["checkpoint"].update(
            note=swap(p["checkpoint"]["note"], f"\n{p['checkpoint']['size']}\n", "\n99\n")
        ),
        "signature",
    ),
    "another field": (lambda p: p.update(more=1), "no proof"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_is_changed_in_it_it_proves_nothing(
    nowhere: Shell, proved: tuple[Proof, str], what: str
) -> None:
    proof, line = json.loads(json.dumps(proved[0])), proved[1]
    change, reason = CHANGES[what]
    change(proof)
    assert reason in checked(nowhere, proof, "--key", line, ok=False)


def test_a_transaction_that_is_not_there_or_too_new_is_refused(shell: Shell) -> None:
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "5", "--reference", "r")
    (entry,) = shell.json("audit", "replay")["data"]
    assert "CHECKPOINT_LAG_S" in shell.refusal("audit", "prove", entry["id"])
    assert "no transaction" in shell.refusal("audit", "prove", organization)


def test_who_may_not_sign_proves_by_the_checkpoints_that_there_are(shell: Shell) -> None:
    ours = shell.having(CHECKPOINT_LAG_S="0")
    ours.run("wallet", "deposit", ours.new_organization(), "5", "--reference", "r")
    (entry,) = ours.json("audit", "replay")["data"]
    key = ours.json("operator", "create", "anna", "--may", "audit,keys")["key"]
    auditor = ours.having(OPERATOR_KEY=key)
    key = auditor.json("operator", "create", "bert", "--may", "money")["key"]
    bert = ours.having(OPERATOR_KEY=key)
    assert "may" in bert.refusal("audit", "prove", entry["id"])
    assert "OPERATOR_KEY" in ours.refusal("audit", "prove", entry["id"])
    signed = auditor.json("audit", "prove", entry["id"])
    assert ours.json("audit", "prove", entry["id"]) == signed
