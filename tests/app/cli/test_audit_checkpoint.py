"""`audit checkpoint`: a note for others, by every way an operator may want it."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from domain.cause import Cause, utc_now
from domain.finance.statement import Month
from projections.audit.checkpoint import SignedCheckpoint, read_verifier_key
from tests.app.cli.shell import Shell
from tests.installation import this_month

AT_ONCE = {"CHECKPOINT_LAG_S": "0", "PUBLIC_URL": "https://api.example/carrier"}


def test_a_checkpoint_is_printed_written_and_brought_to_the_sink(
    shell: Shell, tmp_path: Path
) -> None:
    sink, out = tmp_path / "kept", tmp_path / "today.txt"
    sink.mkdir()
    ours = shell.having(**AT_ONCE, CHECKPOINT_SINK=str(sink))
    ours.run("keys", "rotate")
    ours.run("org", "create", "--name", "Acme")
    printed = SignedCheckpoint.read(ours.run("audit", "checkpoint").output)
    facts = ours.json("audit", "checkpoint", "--out", out)
    assert [*facts] == ["position", "size", "root", "at", "key_id", "signature", "note"]
    signed = SignedCheckpoint.read(facts["note"])
    assert (facts["size"], facts["position"]) == (signed.checkpoint.size, signed.checkpoint.size)
    assert facts["root"] == signed.checkpoint.root.hex()
    assert signed.checkpoint.origin == "api.example/carrier"
    assert out.read_text("utf-8") == facts["note"]
    assert {path.read_text("utf-8") for path in sink.iterdir()} == {printed.note, signed.note}
    (key,) = (key for key in ours.json("keys", "list")["data"] if key["verifier"])
    assert key["kid"] == facts["key_id"]
    assert len(read_verifier_key(key["verifier"])) == 32


def test_a_log_has_one_origin_whatever_its_public_url_becomes(shell: Shell, tmp_path: Path) -> None:
    first = shell.having(**AT_ONCE)
    moved, files = first.having(PUBLIC_URL="https://b.example"), [tmp_path / "1", tmp_path / "2"]
    first.run("keys", "rotate")
    first.run("org", "create", "--name", "Acme")
    first.run("audit", "checkpoint", "--out", files[0])
    (key,) = (each for each in moved.json("keys", "list")["data"] if each["verifier"])
    assert key["verifier"].startswith("api.example/carrier+")

    def origin_of(note: str) -> str:
        return SignedCheckpoint.read(note).checkpoint.origin

    moved.run("audit", "checkpoint", "--out", files[1])
    checked = moved.json("audit", "verify", "--against", *files)
    assert [each["holds"] for each in checked["checkpoints"]] == [True, True]
    notes = [each.read_text("utf-8") for each in files]
    # Earlier releases wrote no origin: it is that of the newest note.
    shell.rewrite("DELETE FROM stored_events WHERE topic = 'log_origin.fixed'")
    notes.append(moved.run("audit", "checkpoint").output)
    shell.rewrite("DELETE FROM checkpoints")  # The log keeps it by itself.
    notes.append(moved.run("audit", "checkpoint").output)
    assert [*map(origin_of, notes)] == ["api.example/carrier"] * 4


def test_whoever_signs_or_makes_the_tree_anew_is_in_the_log_before_it_is_done(shell: Shell) -> None:
    ours = shell.having(**AT_ONCE)
    owner = ours.new_organization()
    ours.run("wallet", "deposit", owner, "5", "--reference", "r")
    paid = ours.json("audit", "replay")["data"][0]["id"]
    for command in (("audit", "prove", paid), ("audit", "checkpoint")):
        ours.run(*command)
        with sqlite3.connect(shell.database) as database:
            (covered,) = database.execute("SELECT max(position) FROM checkpoints").fetchone()
        assert covered == ours.json("operator", "list", "--acts")["data"][-1]["position"], command
    ours.run("projections", "rebuild", "audit_tree")
    told = ours.json("operator", "list", "--acts")["data"]
    signed, rebuilt = "checkpoint.signed", "tree.rebuilt"
    assert [each["act"] for each in told] == [signed, signed, rebuilt]
    assert [*told[0]] == ["at", "who", "act", "subject", "position", "actor"]
    assert {each["actor"].partition(":")[0] for each in told} == {"os"}


def test_a_sink_that_is_away_is_said_and_the_checkpoint_is_made(shell: Shell) -> None:
    ours = shell.having(**AT_ONCE, CHECKPOINT_SINK=str(shell.home / "away"))
    ours.run("org", "create", "--name", "Acme")
    result = ours.run("audit", "checkpoint", "--json")
    assert "Warning: CHECKPOINT_SINK: " in result.stderr
    (shell.home / "away").mkdir()
    ours.run("audit", "checkpoint")
    assert len([*(shell.home / "away").iterdir()]) == 2


def beside_a_sink(shell: Shell) -> Shell:
    return shell.having(**AT_ONCE, CHECKPOINT_SINK=str(shell.home / "kept"))


@pytest.fixture(scope="module")
def witnessed_home(migrated_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place to be copied, with its sink: six commands take longer than most tests."""
    home = tmp_path_factory.mktemp("witnessed")
    shutil.copytree(migrated_home, home, dirs_exist_ok=True)
    (home / "kept").mkdir()
    ours = beside_a_sink(Shell(home))
    for _ in range(2):
        for _ in range(2):
            ours.run("org", "create", "--name", "Acme", "--no-wallet")
        ours.run("audit", "checkpoint")
    return home


@pytest.fixture
def witnessed(shell: Shell, witnessed_home: Path) -> Shell:
    """Four organizations, two signed acts and the origin; two checkpoints lie with others."""
    shutil.copytree(witnessed_home, shell.home, dirs_exist_ok=True)
    return beside_a_sink(shell)


def kept(shell: Shell) -> list[Path]:
    return sorted(Path(shell.environment["CHECKPOINT_SINK"]).iterdir())


def test_one_who_rewrites_tree_and_checkpoints_too_is_convicted_by_what_others_keep(
    witnessed: Shell,
) -> None:
    witnessed.rewrite(
        "UPDATE stored_events SET state = replace(state, 'Acme', 'Evil') WHERE rowid=5"
    )
    found = witnessed.json("audit", "verify", status=1)["failures"]
    assert [each["position"] for each in found] == [5, 4]
    witnessed.run("projections", "rebuild", "--all")
    witnessed.run("projections", "rebuild", "audit_tree")
    found = witnessed.json("audit", "verify", status=1)["failures"]
    assert "our checkpoint of" in found[0]["reason"]
    assert "nothing is signed" in witnessed.refusal("audit", "checkpoint")
    witnessed.rewrite("DELETE FROM checkpoints WHERE number = 2")
    witnessed.run("audit", "checkpoint")
    assert witnessed.json("audit", "verify")["ok"]
    first, second, *_ = kept(witnessed)
    report = witnessed.json("audit", "verify", "--against", first, second, status=1)
    assert [each["holds"] for each in report["checkpoints"]] == [True, False]
    report = witnessed.json("audit", "verify", "--from", second, status=1)
    assert "use --against" in report["failures"][0]["reason"]


def test_a_kept_checkpoint_is_not_passed_over_because_the_check_begins_behind_it(
    witnessed: Shell,
) -> None:
    first, second = kept(witnessed)
    said = witnessed.refusal("audit", "verify", "--from", second, "--against", first)
    assert (str(first) in said, "--from begins behind it" in said) == (True, True)
    (empty := witnessed.home / "empty").mkdir()
    assert "no checkpoint" in witnessed.refusal("audit", "verify", "--against", empty)


def test_a_note_of_a_key_that_is_gone_needs_the_line_that_its_keeper_has(witnessed: Shell) -> None:
    witnessed.run("keys", "rotate")
    (line,) = (key["verifier"] for key in witnessed.json("keys", "list")["data"] if key["verifier"])
    for file in (witnessed.home / "var" / "keys").glob("checkpoint-*"):
        file.unlink()
    (first, *_) = kept(witnessed)
    report = witnessed.json("audit", "verify", "--against", first, status=1)
    assert "is not known here" in report["failures"][0]["reason"]
    assert witnessed.json("audit", "verify", "--against", first, "--key", line)["ok"]
    assert witnessed.json("audit", "verify")["ok"], "our own are believed by their roots"


def test_a_restored_log_is_held_against_the_checkpoints_of_the_backup(
    witnessed: Shell, tmp_path: Path
) -> None:
    witnessed.run("backup", tmp_path / "backup")
    elsewhere = Shell(tmp_path / "elsewhere", witnessed.changes)
    elsewhere.run("restore", tmp_path / "backup")
    assert elsewhere.json("audit", "verify", "--against", *kept(witnessed))["ok"]
    (sink := tmp_path / "sink").mkdir()
    held = elsewhere.having(CHECKPOINT_SINK=str(sink))
    assert held.json("audit", "checkpoint")["size"] == 8
    assert [*sink.iterdir()] == [], "the copy is held"
    assert elsewhere.json("audit", "verify")["leaves"] == 8


@pytest.mark.parametrize(
    "spoiled", ["note = 'position ' || note", "note = ''", "position = position + 1"]
)
def test_a_changed_row_of_our_own_is_a_fault_with_its_number(
    witnessed: Shell, spoiled: str
) -> None:
    witnessed.rewrite(f"UPDATE checkpoints SET {spoiled} WHERE number = 2")  # noqa: S608  # Text of ours.
    (failure,) = witnessed.json("audit", "verify", status=1)["failures"]
    assert "our checkpoint 2 (position " in failure["reason"]
    for command in (["audit", "checkpoint"], ["audit", "verify", "--against", *kept(witnessed)]):
        said = witnessed.run(*command, status=1)
        assert "our checkpoint 2" in said.stderr + said.stdout
    told = [each["message"] for each in witnessed.json("doctor", status=1)["data"]]
    assert [each for each in told if "our checkpoint 2" in each]


def test_a_statement_keeps_its_checkpoint_and_shows_none_that_was_changed(shell: Shell) -> None:
    ours, month = shell.having(**AT_ONCE), this_month()
    owner = ours.new_organization()
    ours.run("wallet", "deposit", owner, "5", "--reference", "r")
    ours.run("audit", "checkpoint")
    container = ours.container()
    container.log.append(Month.close(month, Cause(utc_now(), "test", "test")))

    def carried() -> object:
        return ours.json("audit", "statement", owner, month)["checkpoint"]

    assert carried() is None
    note = ours.json("audit", "checkpoint")["note"]
    ours.run("org", "create", "--name", "Acme")
    ours.run("audit", "checkpoint")
    assert carried() == note
    ours.rewrite("UPDATE checkpoints SET note = 'x' WHERE number = 2")
    assert carried() is None
