"""Whatever a file or a log holds, a terminal only shows it."""

import json
import os
import pty
import re
from contextlib import suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from app.cli.root import Defused, printable
from projections.audit.tree import leaf_hash
from tests.app.cli.shell import Shell
from tests.plan_files import plan, written

HOSTILE = "\x1b]0;yours\x07\x1b[2J\u202egpj.\u2066\x9b31m\r\u200b\nok        yes"


@pytest.fixture
def strange(shell: Shell) -> Shell:
    """A log that a stranger has written: names, reasons, a month and a currency."""
    owner = shell.new_organization()
    shell.run("wallet", "adjust", owner, "1", "--reference", "r", "--reason", "why")
    hostile = json.dumps(HOSTILE, ensure_ascii=False)
    for old in ("Acme", "why"):
        change = "UPDATE stored_events SET state = CAST(replace(state, ?, ?) AS BLOB)"
        shell.rewrite(change, f'"{old}"', hostile)
    shell.run("projections", "rebuild", "--all")
    return shell


def harmless(text: str) -> None:
    strange = {each for each in text if not each.isprintable() and each != "\n"}
    assert strange == set()
    assert "\nok        yes" not in text, "it looks like a line of ours"


def seen(shell: Shell, *command: object) -> str:
    """Return what a command shows on a real terminal; for others click strips escapes."""
    reader, writer = pty.openpty()
    shown = b""
    with shell.start(*command, stdout=writer, stderr=writer) as started:
        os.close(writer)
        with suppress(OSError):  # EIO: nobody writes to it any more.
            while part := os.read(reader, 65_536):
                shown += part
        started.wait(60)
    os.close(reader)
    return re.sub("\r\033\\[K[^\r]*", "", shown.decode()).replace("\r\n", "\n")  # Progress.


def test_what_a_log_holds_is_harmless(strange: Shell) -> None:
    for command in (("org", "list"), ("audit", "replay"), ("audit", "verify")):
        harmless(strange.run(*command).output)
    harmless(seen(strange, "audit", "replay"))


def test_what_the_encoding_of_a_terminal_lacks_is_escaped() -> None:
    inner = TextIOWrapper(shown := BytesIO(), "latin-1", write_through=True)
    Defused(inner).write("\u00dc \u2013 \u0141")
    assert shown.getvalue() == b"\xdc \\u2013 \\u0141"


def test_what_is_wrong_with_a_log_is_harmless(strange: Shell, tmp_path: Path) -> None:
    strange.rewrite("UPDATE stored_events SET topic = ? WHERE rowid = 1", HOSTILE)
    harmless(strange.run("audit", "verify", status=1).output)
    harmless(strange.refusal("org", "create", "--name", "Acme"))
    strange.rewrite("UPDATE stored_events SET topic = 'ledger.opened', state = 7 WHERE rowid = 1")
    found = {each["check"]: each["message"] for each in strange.json("doctor", status=1)["data"]}
    assert "cannot decode" in found["log"]
    assert "backup" in found, "it says the rest, too"
    kept = tmp_path / "a\x1b[2J\nok        yes"
    kept.write_text("no note")
    harmless(strange.run("audit", "verify", "--against", kept, status=1).output)


def test_what_a_file_holds_is_harmless(shell: Shell, tmp_path: Path) -> None:
    state = '{"originator_topic":"x"}'
    facts = {"position": 1, "stream": str(UUID(int=1)), "version": 1, "topic": HOSTILE}
    leaf = leaf_hash(1, UUID(int=1), 1, HOSTILE, state.encode()).hex()
    line = msgspec.json.encode({**facts, "state": state, "leaf": leaf})
    (tmp_path / "log.jsonl").write_bytes(line + b"\n")
    elsewhere = Shell(tmp_path / "elsewhere", shell.changes)
    said = elsewhere.run("audit", "import", tmp_path / "log.jsonl", status=1).output
    assert "cannot read the event" in said
    harmless(said)
    (tmp_path / "plans").write_bytes(written(plan("Europe", currency=HOSTILE)))
    harmless(shell.run("plans", "import", tmp_path / "plans", status=1).output)
    harmless(shell.run("plans", "import", tmp_path / "no\x1b[2J\x9b", status=2).output)


def test_an_export_to_a_terminal_is_harmless_and_one_to_a_file_is_exact(
    strange: Shell, tmp_path: Path
) -> None:
    strange.run("audit", "export", "--out", tmp_path / "log.jsonl")
    assert "\u202e" in (tmp_path / "log.jsonl").read_text("utf-8")
    harmless(seen(strange, "audit", "export"))


def test_ordinary_text_stays_as_it_is() -> None:
    assert printable("Ærø Telecom 東京\nनमस्ते") == "Ærø Telecom 東京\nनमस्ते"
