"""An export becomes an installation, on either database, and its export has the same bytes."""

import io
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.processes.importing import import_log
from domain.errors import NotPossible, WrongCurrency
from projections.audit.checkpoint import verifier_key
from projections.audit.export import Export, NoExport, event_of, read_export
from projections.audit.tree import leaf_hash, root_of
from projections.engine import reader
from projections.stores.checkpoints import StoredCheckpoint
from tests.app.cli.shell import shell_of
from tests.installation import Installation, Process, SetClock, sqlite_only
from tests.projections.histories import Life, run_on_log
from tests.projections.looking import rows
from tests.seeds import PostgresSeed, Seed, sqlite_seed
from tests.servers.databases import Databases


def exported(process: Process, until: int | None = None) -> bytes:
    return b"".join(Export(process.log, until or process.log.head()).lines())


def live(process: Process) -> None:
    """Let a good deal happen, and leave a gap between two positions."""
    life = Life(process, 31)
    life.go_on(15)
    gone = process.organization("")
    stream = gone.hex if process.persistence.location.endswith(".db") else str(gone)
    run_on_log(
        process, "DELETE FROM {table} WHERE originator_id = ? RETURNING {position}", (stream,)
    )
    life.go_on(5)
    process.projector.catch_up()


@pytest.fixture
def elsewhere(tmp_path: Path, migrated: Seed) -> Iterator[Installation]:
    """Another installation on the same database system."""
    (tmp_path / "else").mkdir()
    made = Installation(tmp_path / "else", like=migrated)
    yield made
    made.close()


def unordered(process: Process) -> dict[str, set[object]]:
    """Return every row of every read model; the two databases order texts differently."""
    return {table: {*found} for table, found in rows(process).items()}


def arrives(source: Process, target: Process, file: Path) -> bool:
    """Import an export of the source; compare everything that is made of the log.

    Tells whether it is still exported as it was, once the target has gone on.
    """
    source.projector.catch_up()
    whole = exported(source)
    file.write_bytes(whole)
    report = import_log(target, file)
    assert (report.failures, report.position) == ([], source.log.head())
    assert exported(target) == whole
    assert unordered(target) == unordered(source)
    positions = [line["position"] for line in map(json.loads, whole.splitlines())]
    assert positions != [*range(1, len(positions) + 1)], "there is a gap"
    target.organization()
    return exported(target, source.log.head()) == whole


@sqlite_only("of the two ways between the databases")
def test_a_log_moves_from_sqlite_to_postgresql_and_back(
    process: Process, tmp_path: Path, databases: Databases
) -> None:
    live(process)
    with ExitStack() as stack:
        for name, seed in (("there", PostgresSeed(databases)), ("back", sqlite_seed())):
            (tmp_path / name).mkdir()
            other = stack.enter_context(closing(Installation(tmp_path / name, like=seed)))
            assert arrives(process, other.process(), tmp_path / f"{name}.jsonl")
            process = other.process()


def test_an_export_has_every_event_however_few_are_read_at_once(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(process)
    monkeypatch.setattr(reader, "BATCH_EVENTS_MAX", 7)
    positions = [json.loads(line)["position"] for line in exported(process).splitlines()]
    assert positions == [row.position for row in process.log.stored(0, 10_000)]


def changed(number: int, **change: Any) -> Callable[[list[bytes]], None]:
    """Return what changes some fields of one line and computes its leaf anew."""

    def change_it(lines: list[bytes]) -> None:
        line = json.loads(lines[number]) | change
        place = (line["position"], line["stream"], line["version"], line["topic"])
        line["leaf"] = leaf_hash(*place, line["state"].encode()).hex()
        lines[number] = msgspec.json.encode(line) + b"\n"

    return change_it


def spoiled(old: bytes, new: bytes) -> Callable[[list[bytes]], None]:
    """Return what replaces something in the last line."""

    def spoil(lines: list[bytes]) -> None:
        assert old in lines[-1]
        lines[-1] = lines[-1].replace(old, new)

    return spoil


def begun_as(kind: str) -> Callable[[list[bytes]], None]:
    """Return what lets the stream of an organization begin as another kind."""

    def begin(lines: list[bytes]) -> None:
        state = json.loads(json.loads(lines[1])["state"]) | {"originator_topic": kind}
        changed(1, state=json.dumps(state))(lines)

    return begin


Spoil = Callable[[list[bytes]], Any]
UNREADABLE: list[tuple[Spoil, str]] = [
    (spoiled(b"5000000", b"6000000"), "line 5: the leaf of position 5 is not that of its event"),
    (spoiled(b'"leaf":"', b'"leaf":"0'), "line 5: the leaf of position 5"),
    (spoiled(b'"position":5', b'"position":"5"'), "line 5: is no line of an export"),
    (spoiled(b'"position":5', b'"position":0'), "line 5: is no line of an export"),
    (spoiled(b'"leaf"', b'"sheet"'), "line 5: is no line of an export"),
    (spoiled(b"}\n", b""), "line 5: is no line of an export"),
    (spoiled(b"}\n", b"}"), "line 5: is no line of an export"),
    (spoiled(b'{"position":5', b'{"position": 5'), "line 5: is no line of an export"),
    (spoiled(b'{"position":5', b'{"position":4,"position":5'), "line 5: is no line of an export"),
    (lambda lines: lines.append(b"\n"), "line 6: is no line of an export"),
    (lambda lines: lines.append(lines[4]), "line 6: position 5 does not rise"),
    (lambda lines: lines.insert(0, lines.pop()), "line 2: position 1 does not rise"),
    (changed(1, topic="organization.painted"), "cannot read the event 'organization.painted'"),
    (changed(1, topic="a.\x1b[2J\n"), r"cannot read the event 'a\.\\x1b\[2J\\n'"),
    (changed(1, state='{"name": 7}'), "cannot read the event 'organization.registered'"),
    (begun_as("os.system"), "position 2: stream .* begins as 'os.system' with organization"),
    (begun_as("plan"), "position 2: stream .* begins as 'plan' with organization"),
]
NOT_WHOLE: list[tuple[Spoil, str]] = [
    (spoiled(b"5000000", b"6000000"), "line 5: the leaf of position 5 is not that of its event"),
    (changed(4, version=1), "comes twice"),
    (lambda lines: lines.pop(2), "it is a part, or lines are missing"),
    (lambda lines: lines.__delitem__(slice(3)), "it is a part, or lines are missing"),
]


def after(spoil: Spoil, whole: bytes) -> bytes:
    lines = whole.splitlines(keepends=True)
    spoil(lines)
    return b"".join(lines)


def test_a_line_that_is_not_as_it_was_exported_is_refused(process: Process) -> None:
    process.organization("5")
    whole = exported(process)
    for spoil, reason in UNREADABLE:
        with pytest.raises(NoExport, match=reason):
            [*map(event_of, read_export(io.BytesIO(after(spoil, whole))))]


@pytest.mark.each_database
def test_a_refused_import_has_written_nothing_and_a_log_is_not_imported_twice(
    process: Process, elsewhere: Installation, tmp_path: Path
) -> None:
    process.organization("5")
    whole, target, file = exported(process), elsewhere.process(), tmp_path / "log.jsonl"
    for spoil, reason in NOT_WHOLE:
        file.write_bytes(after(spoil, whole))
        with pytest.raises((NoExport, NotPossible), match=reason):
            import_log(target, file)
        assert target.log.head() == 0, reason
    file.write_bytes(whole)
    assert import_log(target, file).ok
    with pytest.raises(NotPossible, match="holds events already"):
        import_log(target, file)


def test_a_log_of_another_currency_is_refused(
    process: Process, tmp_path: Path, migrated: Seed
) -> None:
    process.organization("5")
    file = tmp_path / "log.jsonl"
    file.write_bytes(exported(process))
    (tmp_path / "euro").mkdir()
    euro = Installation(tmp_path / "euro", like=migrated, CURRENCY="EUR")
    target = euro.process()
    with pytest.raises(WrongCurrency):
        import_log(target, file)
    assert target.log.head() == 0
    euro.close()


def test_a_log_that_breaks_an_invariant_is_imported_and_told(
    process: Process, elsewhere: Installation, tmp_path: Path
) -> None:
    process.organization("5")
    lines = exported(process).splitlines(keepends=True)
    state = json.loads(lines[4])["state"]
    changed(4, state=state.replace('"balance_micros":5000000', '"balance_micros":6000000'))(lines)
    (tmp_path / "log.jsonl").write_bytes(b"".join(lines))
    report = import_log(elsewhere.process(), tmp_path / "log.jsonl")
    assert [failure.position for failure in report.failures] == [5]


def test_parts_follow_each_other_in_one_tree(process: Process) -> None:
    process.organization("5")
    whole, parts = Export(process.log, 5), [Export(process.log, last) for last in (2, 4, 5)]
    lines = [*whole.lines()]
    found: list[bytes] = []
    for part, first in zip(parts, (1, 3, 5), strict=True):
        before = part.skip_to(first)
        assert before.size == len(found)
        assert len(before.hashes) == before.size.bit_count()
        found += part.lines()
    assert found == lines
    root = root_of(leaf_hash(*row) for row in process.log.stored(0, 10))
    assert parts[-1].tree.root() == whole.tree.root() == root
    assert [part.events for part in parts] == [2, 2, 1]


class Kept(NamedTuple):
    """A log with a closed month, its export, and the checkpoints of its sink, one of them newer."""

    process: Process
    file: Path
    notes: Path


@pytest.fixture
def kept(installation: Installation, tmp_path: Path) -> Kept:
    installation.environment["CHECKPOINT_LAG_S"] = "0"
    clock = SetClock(datetime(2026, 2, 20, tzinfo=UTC))
    process = installation.process(clock)
    process.organization("5")
    file, notes = tmp_path / "log.jsonl", tmp_path / "notes"
    notes.mkdir()
    for days in (0, 10, 1, 1):
        clock.forward(days=days)
        process.month_end.run()
        process.tree_builder.catch_up()
        process.checkpoints.run()
        file.write_bytes(exported(process))
        process.organization("5")
    for each in process.checkpoint_store.all():
        assert isinstance(each, StoredCheckpoint)
        (notes / f"{9 - each.number}.txt").write_text(each.signed.note)  # In another order.
    # The last one was made behind the export.
    process.tree_builder.catch_up()
    (notes / "9.txt").write_text(process.checkpoints.make().signed.note)
    return Kept(process, file, notes)


def test_an_import_with_the_checkpoints_kept_beside_it_keeps_those_of_statements(
    elsewhere: Installation, kept: Kept
) -> None:
    process, file, notes = kept
    (closed_at,) = (
        row.position for row in process.log.stored(0, 99) if row.topic == "month.closed"
    )
    note, count = process.statement_checkpoint(closed_at), len([*notes.iterdir()])
    assert note is not None
    told = shell_of(elsewhere).run("audit", "import", file, "--checkpoints", notes)
    assert told.stderr.count("signs events behind the end of the export, and was left out") == 1
    target = elsewhere.process()
    assert target.statement_checkpoint(closed_at) == note
    assert len([*target.checkpoint_store.all()]) == count - 1
    assert target.checkpoint_store.undelivered(9) == []
    assert shell_of(elsewhere).json("audit", "verify")["ok"]


def test_a_checkpoint_of_another_log_or_key_is_refused_and_nothing_is_written(
    elsewhere: Installation, kept: Kept
) -> None:
    process, file, notes = kept
    shell, one = shell_of(elsewhere), notes / "8.txt"
    (public_key,) = (key.public_key for key in process.checkpoint_keys.live())
    command = ("audit", "import", file, "--checkpoints", notes)
    other = verifier_key("a", Ed25519PrivateKey.generate().public_key().public_bytes_raw())
    assert "which signed it, is not known here" in shell.refusal(*command, "--key", other)
    without = shell.refusal(*command[:3], "--key", other, status=2)
    assert without == "--key is given with --checkpoints"
    without = shell.refusal("audit", "verify", "--key", other, status=2)
    assert without == "--key is given with --against or --from"
    text = one.read_text()
    root = text.splitlines()[2]
    one.write_text(text.replace(root, b64encode(bytes(32)).decode()))
    assert f"{one}: what it signed" in shell.refusal(*command)
    ours = verifier_key(text.splitlines()[0], public_key)
    assert f"{one}: its signature by key" in shell.refusal(*command, "--key", ours)
    assert elsewhere.process().log.head() == 0
    one.write_text(text)
    assert shell.run(*command, "--key", ours).exit_code == 0
