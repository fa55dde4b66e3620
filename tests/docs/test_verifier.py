"""The verifier convicts every kind of change to an export, and accepts what is right."""

import ast
import base64
import hashlib
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import to_builtins

from app.books.statements import statements_of
from app.http.finance.replies import show_statement
from domain.finance.statement import Month
from domain.ids import derive_id
from domain.months import month_of, months_before
from projections.audit.export import Export
from tests.app.cli.shell import Shell
from tests.docs.verifier import VERIFIER, verify
from tests.installation import Installation, Process, SetClock
from tests.projections.a_year import Year
from tests.seeds import sqlite_seed

OLDEST = (3, 9)
ORIGIN = "carrier.test"
Lines = list[dict[str, Any]]


class Kept(NamedTuple):
    """An export, and what an outsider keeps: two checkpoints and the key that signs them."""

    whole: bytes
    notes: list[str]
    key: str

    @property
    def lines(self) -> Lines:
        return [*map(json.loads, self.whole.splitlines())]


SIGNER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
THIEF = Ed25519PrivateKey.from_private_bytes(bytes(32))


def key_of(signer: Ed25519PrivateKey, origin: str = ORIGIN) -> tuple[bytes, str]:
    """Return a key's id, and the key as an outsider keeps it."""
    public = b"\x01" + signer.public_key().public_bytes_raw()
    number = hashlib.sha256(origin.encode() + b"\n" + public).digest()[:4]
    return number, f"{origin}+{number.hex()}+{base64.b64encode(public).decode()}"


def note(tree: Any, position: int, signer: Ed25519PrivateKey = SIGNER, origin: str = ORIGIN) -> str:
    """Return the signed note of a tree."""
    root = base64.b64encode(tree.root()).decode()
    time = "2026-04-02T00:00:00.000Z"
    text = f"{origin}\n{tree.size}\n{root}\nposition {position}\ntime {time}\n"
    signed = base64.b64encode(key_of(signer, origin)[0] + signer.sign(text.encode())).decode()
    return f"{text}\n\u2014 {origin} {signed}\n"


def trade(process: Process) -> None:
    """Buy lookups in three months, one of them late; two of the months are closed."""
    process.clock = clock = SetClock(datetime(2026, 1, 30, tzinfo=UTC))
    one, other = process.organization("5"), process.organization("7")
    process.look_up(one)
    clock.now = datetime(2026, 2, 1, 0, 5, tzinfo=UTC)
    process.log.append(Month.close("2026-01", process.cause()))
    clock.now = datetime(2026, 1, 31, 23, 6, tzinfo=UTC)  # That of another machine.
    process.look_up(one)
    clock.now = datetime(2026, 3, 1, 0, 4, tzinfo=UTC)
    process.accounts.set_spending_limit(one, 5_000_000, process.cause())
    process.look_up(one)
    process.log.append(Month.close("2026-02", process.cause()))
    clock.forward(days=40)
    process.accounts.move(
        "adjustment", other, -1_000_001, "c-1", process.cause(), reason="a mistake"
    )
    process.client(None)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with closing(Installation(tmp_path_factory.mktemp("trade"))) as made:
        process = made.process()
        trade(process)
        yield process


@pytest.fixture(scope="module")
def kept(process: Process) -> Kept:
    head = process.log.head()
    notes, whole = [], b""
    for until in (head - 4, head):
        export = Export(process.log, until)
        whole = b"".join(export.lines())
        notes.append(note(export.tree, export.position))
    return Kept(whole, notes, key_of(SIGNER)[1])


def judged(
    tmp_path: Path, lines: bytes | Lines, notes: list[str], *arguments: object
) -> tuple[int, list[str]]:
    """Return the exit status of the verifier and its verdicts."""
    file = tmp_path / "log.jsonl"
    if isinstance(lines, list):
        lines = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    file.write_bytes(lines)
    for number, each in enumerate(notes):
        (tmp_path / f"note-{number}").write_text(each)
        arguments = (*arguments, "--checkpoint", tmp_path / f"note-{number}")
    told: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.print", lambda text, **_: told.extend(text.splitlines()))
        status = verify.main([str(file), *map(str, arguments)])
    return status, told


def pythons() -> set[str]:
    """Return this interpreter, and of others on this machine the oldest that is not too old."""
    named = (shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], 20))
    beside = sorted(Path(sys.base_prefix).parent.glob("3.*/bin/python3.?"))  # As pyenv has them.
    asked = f"import sys; sys.exit(sys.version_info < {OLDEST})"
    for python in [*map(str, beside), *filter(None, named)]:
        if subprocess.run([python, "-c", asked], capture_output=True, check=False).returncode == 0:
            return {sys.executable, python}
    return {sys.executable}


def test_what_is_right_is_accepted_by_any_python_with_nothing_but_itself(
    kept: Kept, tmp_path: Path
) -> None:
    (tmp_path / "log.jsonl").write_bytes(kept.whole)
    (tmp_path / "note").write_text(kept.notes[1])
    arguments = ("log.jsonl", "--checkpoint", "note", "--key", kept.key)
    for python in pythons():
        command = [python, "-I", "-S", VERIFIER, *arguments]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stderr) == (0, ""), python
        first, second = run.stdout.splitlines()
        assert first.startswith("ok       checkpoint note: ")
        assert f"signed by {ORIGIN}+" in first
        assert second.startswith(f"ok       {len(kept.lines)} events up to position")


def test_it_is_written_for_old_pythons_and_imports_only_what_they_bring() -> None:
    tree = ast.parse(VERIFIER.read_text("utf-8"), feature_version=OLDEST)
    imports = {
        each.module or "" if isinstance(each, ast.ImportFrom) else each.names[0].name
        for each in ast.walk(tree)
        if isinstance(each, ast.Import | ast.ImportFrom)
    }
    imports = {name.partition(".")[0] for name in imports}
    assert imports <= sys.stdlib_module_names


def with_leaf(line: dict[str, Any]) -> dict[str, Any]:
    """Give a changed event its own leaf, as whoever forges an export would."""
    return {**line, "leaf": verify.leaf_of(line).hex()}


OTHER: dict[str, Callable[[Any], Any]] = {
    "position": lambda value: value + 10_000,
    "stream": lambda value: value[:-1] + ("0" if value[-1] != "0" else "1"),
    "version": lambda value: value + 1,
    "topic": lambda value: value + "d",
    "state": lambda value: value.replace('"request_id":"', '"request_id":"x', 1),
    "leaf": lambda value: value[::-1],
}


@pytest.mark.parametrize("name", OTHER)
def test_a_changed_field_of_any_event_is_found(name: str, kept: Kept, tmp_path: Path) -> None:
    for number, line in enumerate(kept.lines):
        lines = kept.lines
        lines[number] = changed = {**line, name: OTHER[name](line[name])}
        status, told = judged(tmp_path, lines, [])
        assert status == 1, "the leaf is not that of the event"
        assert f"position {changed['position']}: " in "".join(told)
        if name != "leaf":
            lines[number] = with_leaf(changed)
            status, told = judged(tmp_path, lines, kept.notes)
            assert status == 1, "the event has its leaf, but it is not the one that was signed"
            assert any("events that it signs are not these" in each for each in told)


def dropped(lines: Lines, at: int) -> None:
    del lines[at]


def doubled(lines: Lines, at: int) -> None:
    lines.insert(at, lines[at])


def swapped(lines: Lines, at: int) -> None:
    lines[at - 1 : at + 1] = lines[at - 1 : at + 1][::-1]


def exchanged(lines: Lines, at: int) -> None:
    """Exchange two events but leave the positions where they are."""
    one, two = lines[at - 1], lines[at]
    lines[at - 1] = with_leaf({**two, "position": one["position"]})
    lines[at] = with_leaf({**one, "position": two["position"]})


def inserted(lines: Lines, at: int) -> None:
    """Insert an event of a new stream, one position higher than the event before it."""
    stream = "00000000-0000-4000-8000-000000000000"
    new = {"stream": stream, "version": 1, "topic": "organization.registered", "state": "{}"}
    for line in lines[at:]:
        line["position"] += 1
    lines[at:] = [with_leaf(line) for line in lines[at:]]
    lines.insert(at, with_leaf({"position": lines[at - 1]["position"] + 1, **new}))


def cut(lines: Lines, at: int) -> None:
    del lines[at:]


def renamed(lines: Lines, at: int) -> None:
    """Say that it was another organization's, in every event from here on."""
    for number, line in enumerate(lines[at:], at):
        lines[number] = with_leaf({**line, "state": line["state"].replace("-4", "-5")})


CRIMES = (dropped, doubled, swapped, exchanged, inserted, cut, renamed)


@pytest.mark.parametrize("crime", CRIMES)
def test_whatever_is_done_to_the_events_a_kept_checkpoint_convicts(
    crime: Callable[[Lines, int], None], kept: Kept, tmp_path: Path
) -> None:
    for at in range(1, len(kept.lines)):
        lines = kept.lines
        crime(lines, at)
        if lines == kept.lines:
            continue  # The last event names nobody who could be renamed.
        status, told = judged(tmp_path, lines, kept.notes)
        assert status == 1, (at, told)
        assert told[-1].startswith("FAILED   ")


def test_the_stretch_in_which_it_was_done_is_named(kept: Kept, tmp_path: Path) -> None:
    last_but_one = len(kept.lines) - 2
    lines = kept.lines
    line = lines[last_but_one]
    lines[last_but_one] = with_leaf({**line, "state": OTHER["state"](line["state"])})
    status, told = judged(tmp_path, lines, kept.notes)
    first, second = lines[-5]["position"], lines[-1]["position"]
    assert status == 1
    assert told[0].startswith("ok       checkpoint note-0")
    assert told[1].endswith(f"are not these: behind position {first}, at or before {second}")


@pytest.mark.parametrize("hours", [23, 25, -9_000])
def test_a_checkpoint_of_what_a_failover_lost_is_explained_if_it_was_noticed_soon(
    hours: int, kept: Kept, tmp_path: Path
) -> None:
    """The note of the last event outlived it; the log went on behind the second-last."""
    lines, signed = kept.lines, datetime(2026, 4, 2, tzinfo=UTC)
    lost, state = lines.pop(), {"server": "b", "seen_position": lines[-1]["position"] + 1}
    state["timestamp"] = (signed + timedelta(hours=hours)).isoformat().replace("+00:00", "Z")
    state["last_position"] = lines[-1]["position"]
    state["originator_topic"] = "log"
    stream = str(derive_id("log.discontinued", state["last_position"]))
    place = {"position": lost["position"] + 10**9, "stream": stream, "version": 1}
    lines.append(with_leaf({**place, "topic": "log.discontinued", "state": json.dumps(state)}))
    status, told = judged(tmp_path, lines, kept.notes, "--key", kept.key)
    assert (status, told[1].split()[0]) == ((0, "lost") if 0 <= hours < 24 else (1, "FAILED"))
    assert any("1 checkpoints rest" in each for each in told) is (status == 0)
    nonsense = json.dumps({**state, "last_position": "all"})
    lines[-1] = with_leaf({**lines[-1], "state": nonsense})
    assert judged(tmp_path, lines, kept.notes)[0] == 1
    lines[-1] = with_leaf({**lines[-1], "state": json.dumps(state)})
    still = with_leaf({**lost, "state": OTHER["state"](lost["state"])})
    status, told = judged(tmp_path, [*lines[:-1], still, lines[-1]], kept.notes)
    assert (status, told[1].split()[0]) == (1, "FAILED"), "it is not lost, but other"
    changed = with_leaf({**lines[1], "state": OTHER["state"](lines[1]["state"])})
    status, told = judged(tmp_path, [lines[0], changed, *lines[2:]], kept.notes)
    assert status == 1, "it explains nothing before the loss"


def test_a_log_signed_anew_with_the_stolen_key_is_convicted_by_the_kept_checkpoint(
    kept: Kept, tmp_path: Path
) -> None:
    lines = kept.lines
    lines[3] = with_leaf({**lines[3], "state": OTHER["state"](lines[3]["state"])})
    tree = verify.Tree()
    for line in lines:
        tree.append(verify.leaf_of(line))
    again = note(tree, lines[-1]["position"])
    assert judged(tmp_path, lines, [again], "--key", kept.key)[0] == 0, "nobody kept one"
    assert judged(tmp_path, lines, [again, kept.notes[1]], "--key", kept.key)[0] == 1


def test_older_notes_under_another_origin_go_on_to_verify(kept: Kept, tmp_path: Path) -> None:
    tree = verify.Tree()
    for line in kept.lines:
        tree.append(verify.leaf_of(line))
    older = note(tree, kept.lines[-1]["position"], origin="before.test")
    status, told = judged(tmp_path, kept.whole, [older, kept.notes[1]], "--key", kept.key)
    assert (status, "signed by before.test+" in told[0]) == (0, True)


def test_the_newest_events_that_no_given_checkpoint_covers_are_named(
    kept: Kept, tmp_path: Path
) -> None:
    lines, at = kept.lines, [line["position"] for line in kept.lines]
    for notes, behind in (([], 0), (kept.notes[:1], at[-5])):
        _, told = judged(tmp_path, lines, notes)
        count = sum(position > behind for position in at)
        place = f"behind position {behind}, up to {at[-1]}: no given checkpoint covers these"
        assert told[-2] == f"open     {count} events {place}"
    _, told = judged(tmp_path, lines, kept.notes)
    assert not any(each.startswith("open") for each in told)


def test_what_a_file_holds_is_harmless_to_a_terminal(
    kept: Kept, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, hostile = kept.lines, "\x1b[2J\u202e\x9b1m\nok        yes"
    state = json.loads(lines[0]["state"]) | {"originator_topic": hostile}
    lines[0] = with_leaf({**lines[0], "state": json.dumps(state)})
    lines[1] = with_leaf({**lines[1], "topic": hostile, "state": "[]"})
    names = [tmp_path / f"{name}{hostile}" for name in ("log", "note", "none")]
    names[0].write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    names[1].write_text(kept.notes[0])
    verify.main([str(names[0]), "--checkpoint", str(names[1])])
    verify.main([str(names[2])])
    for told in capsys.readouterr():
        assert {each for each in told if not each.isprintable()} == {"\n"}
        assert "\nok        yes" not in told


def test_a_part_may_end_within_a_commit(process: Process, tmp_path: Path) -> None:
    rows = process.log.stored(0, 1_000)
    last = next(row.position for row in rows if row.topic == "number_lookup.answered")
    export, file = Export(process.log, last), tmp_path / "log.jsonl"
    file.write_bytes(b"".join(export.lines()))
    file.with_name(f"{file.name}.range.json").write_text('{"size": 0, "hashes": []}')
    status, told = judged(tmp_path, file.read_bytes(), [])
    assert (status, told[0].split(":")[0]) == (0, f"open     position {last}")
    file.with_name(f"{file.name}.range.json").unlink()
    status, told = judged(tmp_path, file.read_bytes(), [])
    assert (status, told[0].split(":")[0]) == (1, f"FAILED   position {last}")


def test_a_note_that_another_key_has_signed_is_no_evidence(kept: Kept, tmp_path: Path) -> None:
    tree = verify.Tree()
    for line in kept.lines:
        tree.append(verify.leaf_of(line))
    forged = note(tree, kept.lines[-1]["position"], THIEF)
    status, told = judged(tmp_path, kept.whole, [forged], "--key", kept.key)
    assert (status, told[0]) == (1, "FAILED   checkpoint note-0: is signed by none of the keys")
    altered = kept.notes[1].replace("2026-04-02", "2026-04-01")
    assert judged(tmp_path, kept.whole, [altered], "--key", kept.key)[0] == 1
    status, told = judged(tmp_path, kept.whole, [kept.notes[1].rstrip()])  # As from a mail.
    assert (status, told[0].endswith("events, no key given")) == (0, True)


def test_an_event_of_a_wallet_that_makes_no_sense_is_found(kept: Kept, tmp_path: Path) -> None:
    # No time is before it, and each item would be remembered.
    odd = '{"month": "2026-01", "timestamp": "0001-01-01T00:00:00Z", "organization_id": 7, '
    odd += '"price": null, "item_price_micros": 0, "total_count": 1000001}'
    for state in ("{}", "[]", "7", "{", '{"month": "2026-13"}', '{"month": 7}', odd):
        for topic in ("wallet.charged", "wallet.gone", "month.closed", "bulk_job.created"):
            lines = kept.lines
            line = {**lines[-1], "topic": topic, "state": state}
            lines[-1] = with_leaf(line)
            status, told = judged(tmp_path, lines, [])
            assert (status, "makes no sense" in "".join(told)) == (1, True), (topic, state)


@pytest.fixture
def parts(process: Process, tmp_path: Path) -> list[Path]:
    """Three parts, each after the first beside the tree before it."""
    files, first, head = [], 1, process.log.head()
    for last in (head // 3, head // 2, head):
        export, file = Export(process.log, last), tmp_path / f"part-{last}.jsonl"
        before = export.skip_to(first)
        file.write_bytes(b"".join(export.lines()))
        told = {"size": before.size, "hashes": before.hashes}
        file.with_name(f"{file.name}.range.json").write_text(json.dumps(told))
        files.append(file)
        first = last + 1
    return files


def verdicts(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str]]:
    status = verify.main([*map(str, arguments)])
    return status, capsys.readouterr().out.splitlines()


def test_parts_are_one_log_in_their_order_only(
    parts: list[Path], kept: Kept, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "note").write_text(kept.notes[1])
    with_note = ("--checkpoint", tmp_path / "note", "--key", kept.key)
    status, told = verdicts(capsys, *parts, *with_note)
    assert (status, len(told)) == (0, 2), told
    status, told = verdicts(capsys, parts[2], *with_note)
    assert status == 0
    assert [line.split()[0] for line in told] == ["trusted", "ok", "ok"]
    older = verify.Tree()
    older.append(verify.leaf_of(kept.lines[0]))
    (tmp_path / "older").write_text(note(older, kept.lines[0]["position"]))
    status, told = verdicts(capsys, parts[2], *with_note, "--checkpoint", tmp_path / "older")
    assert (status, told[1].split(":")[0]) == (0, "skipped  checkpoint older"), told
    status, told = verdicts(capsys, parts[0], parts[2], *with_note)
    assert status == 1
    assert "is no continuation" in told[0]
    assert verify.main([str(parts[2]), "--statements", str(tmp_path / "out")]) == 2
    status, told = verdicts(capsys, *parts[:2], *with_note)
    assert (status, "are not these" in "".join(told)) == (1, True)


def test_what_cannot_be_read_is_told_in_one_line(
    kept: Kept, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.jsonl"
    whole = kept.whole
    far = whole.replace(b'"version":1,', b'"version":%d,' % (1 << 63))
    for spoiled in (whole[:-1], b"[]\n", b"\xff\n", whole.replace(b'"leaf"', b'"lief"'), far):
        file.write_bytes(spoiled)
        assert verify.main([str(file)]) == 2
    file.write_bytes(whole)
    (tmp_path / "note").write_text("no note")
    for option, value in (("checkpoint", "note"), ("statement", "note"), ("key", "note")):
        assert verify.main([str(file), f"--{option}", str(tmp_path / value)]) == 2
    assert verify.main([str(file), "--key", kept.key[:-4] + "AAA="]) == 2
    assert verify.main([str(tmp_path / "none")]) == 2
    (tmp_path / "log.jsonl.range.json").write_text('{"size": 3, "hashes": []}')
    assert verify.main([str(file)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert {line.split(":")[0] for line in told.err.splitlines()} == {"Error"}


def test_only_as_many_failures_are_told_as_somebody_reads(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "FAILURES_MAX", 3)
    lines = [{**line, "leaf": "0" * 64} for line in kept.lines]
    _, told = judged(tmp_path, lines, [])
    assert (len(told), told[3]) == (6, f"FAILED   and {len(lines) - 3} more")


def test_it_agrees_with_the_service_on_the_statements_of_a_year(tmp_path: Path) -> None:
    with closing(Installation(tmp_path, like=sqlite_seed())) as made:
        process = made.process(clock := SetClock(datetime(2026, 1, 20, tzinfo=UTC)))
        year = Year(process, clock, 5)
        for _ in range(120):
            year.trade()
        ours = [
            to_builtins(show_statement(each, is_final=found.closed_at is not None, checkpoint=None))
            for month in months_before("2026-01", month_of(clock.now))
            for found in [statements_of(process.log, month)]
            for each in found.statements
        ]
        whole = b"".join(Export(process.log, process.log.head()).lines())
    # Its wallets trade without reasons, so of the verdicts only the statements count.
    judged(tmp_path, whole, [], "--statements", tmp_path / "statements")
    told = [*map(json.loads, (tmp_path / "statements").read_text().splitlines())]
    theirs = {(each["organization"], each["month"]): each for each in told}
    assert len(ours) > 30
    for each in ours:
        each["lines"].sort(key=lambda line: line["kind"])
        assert {**theirs[each["organization"], each["month"]], "checkpoint": None} == each


def test_checkpoints_and_keys_are_taken_as_the_service_writes_them(
    shell: Shell, tmp_path: Path
) -> None:
    service = shell.having(CHECKPOINT_LAG_S="0", PUBLIC_URL="https://carrier.test")
    service.run("keys", "rotate")
    service.run("wallet", "deposit", service.new_organization(), "5", "--reference", "r")
    note, file = tmp_path / "checkpoint.txt", tmp_path / "log.jsonl"
    service.run("audit", "checkpoint", "--out", note)
    service.run("audit", "export", "--out", file)
    (key,) = filter(None, (each["verifier"] for each in service.json("keys", "list")["data"]))
    arguments = (file, "--checkpoint", note, "--key", key)
    assert verify.main([*map(str, arguments)]) == 0


def test_a_statement_that_was_given_to_somebody_convicts(kept: Kept, tmp_path: Path) -> None:
    out, given = tmp_path / "statements", tmp_path / "given.json"
    judged(tmp_path, kept.whole, [], "--statements", out)
    mine = next(each for each in map(json.loads, out.read_text().splitlines()) if each["final"])
    mine["checkpoint"] = kept.notes[1]
    given.write_text(json.dumps({"data": mine, "meta": {}}))
    status, told = judged(tmp_path, kept.whole, [], "--statement", given, "--key", kept.key)
    assert (status, [line.split()[:2] for line in told]) == (
        0,
        [["ok", "checkpoint"], ["ok", "statement"], ["ok", str(len(kept.lines))]],
    )
    for key, other in (("closing_balance", "0.01"), ("lines", []), ("organization", "x")):
        given.write_text(json.dumps({**mine, key: other}))
        status, told = judged(tmp_path, kept.whole, [], "--statement", given)
        assert (status, told[1].startswith("FAILED   statement given.json: ")) == (1, True)
    given.write_text(json.dumps({**mine, "final": False, "closing_balance": "0.01"}))
    assert judged(tmp_path, kept.whole, [], "--statement", given)[0] == 0, "it was not final"


def test_two_checkpoints_of_one_name_are_both_looked_at(kept: Kept, tmp_path: Path) -> None:
    for name, text in (("a", kept.notes[0].replace("\n", "\nx", 2)), ("b", kept.notes[1])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note").write_text(text)
    both = ("--checkpoint", tmp_path / "a" / "note", "--checkpoint", tmp_path / "b" / "note")
    assert judged(tmp_path, kept.whole, [], *both)[0] == 2


def test_whatever_is_in_a_file_it_gives_a_verdict(kept: Kept, tmp_path: Path) -> None:
    dice = random.Random(3)
    scraps = [
        b"\\ud800",
        b"[" * 5_000,
        b"1e999",
        b"\0",
        b"\xff",
        b"null",
        b"-1",
        b'"',
        b"\n",
        b"{}",
    ]
    for text, argument in ((kept.whole, None), (kept.notes[1].encode(), "--checkpoint")):
        for _ in range(150):
            at = dice.randrange(len(text))
            changed = text[:at] + dice.choice(scraps) + text[at + dice.randrange(3) :]
            (tmp_path / "other").write_bytes(changed)
            arguments = [argument, tmp_path / "other"] if argument else []
            whole = kept.whole if argument else changed
            status, told = judged(tmp_path, whole, [], *arguments)
            assert status in {1, 2} or argument, told
    hostile = '{"size": -1, "hashes": ["00"]}'
    (tmp_path / "log.jsonl.range.json").write_text(hostile)
    assert judged(tmp_path, kept.whole, [])[0] == 2


# RFC 8032 §7.1, tests 1 to 3: public key, message, and the two halves of the signature.
RFC = """
d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a -
e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd
25bf5f0595bbe24655141438e7a100b
3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c 72
92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c3
87b2eaeb4302aeeb00d291612bb0c00
fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025 af82
6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594
a7c15e9716ed28dc027beceea1ec40a
"""
VECTORS = RFC.split()


@pytest.mark.parametrize("at", range(0, len(VECTORS), 4))
def test_signatures_are_those_of_rfc_8032(at: int) -> None:
    key, message, *halves = VECTORS[at : at + 4]
    check_vector(
        bytes.fromhex(key), bytes.fromhex(message.strip("-")), bytes.fromhex("".join(halves))
    )


def check_vector(key: bytes, message: bytes, signature: bytes) -> None:
    assert verify.is_signed(key, message, signature)
    assert not verify.is_signed(key, message + b"x", signature)
    for at in (0, 31, 32, 63):
        wrong = bytearray(signature)
        wrong[at] ^= 1
        assert not accepted(key, message, bytes(wrong))
    more = int.from_bytes(signature[32:], "little") + verify.ORDER
    assert not accepted(key, message, signature[:32] + more.to_bytes(32, "little"))
    assert not accepted(key, message, signature + b"\0")


def accepted(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        return bool(verify.is_signed(key, message, signature))
    except ValueError:
        return False
