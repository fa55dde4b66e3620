"""Whatever is changed in the log is found with its position; what is honest is not accused.

One change of each kind of event runs everywhere. With `make soak` every field of every kind is
changed in turn, on both databases, and a table says who has found it: the invariants, the kept
leaves, an outsider's checkpoint after all inside was made anew, and the verifier of exports.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest

from app.security.checkpoint_keys import CheckpointKeys
from domain.finance.month import Month
from domain.log.discontinuity import Discontinuity
from projections.audit.auditor import check_log
from projections.audit.checkpoint import verifier_key
from projections.audit.export import Export
from tests.docs.verifier import verify
from tests.installation import Installation, Process, SetClock, numbers, sqlite_only
from tests.projections.audit.tampering import Change, Lab, changes, tampered
from tests.projections.histories import create_job, look_up
from tests.support.erasing import erase_months

CHANGES = [*changes()]
KINDS = sorted({each.kind for each in CHANGES})


@pytest.fixture
def lab(process: Process) -> Lab:
    return Lab(process)


def sample() -> list[Change]:
    """One field of each kind, another for each: columns, times, amounts, reasons, sealed texts."""
    of_kind = {kind: [each for each in CHANGES if each.kind == kind] for kind in KINDS}
    return [fields[turn % len(fields)] for turn, fields in enumerate(of_kind.values())]


@pytest.mark.slow
@sqlite_only("make soak does all of it on both")
def test_a_change_of_each_kind_of_event_is_found_with_its_position(lab: Lab) -> None:
    for change in sample():
        row = lab.rows[change.kind]
        lab.write(tampered(row, change.path))
        assert lab.found_by_leaves() == {row.position}, change
        lab.write(row)
    assert lab.found_by_leaves() == set()


@sqlite_only("as above")
def test_one_who_makes_all_inside_anew_is_convicted_by_a_checkpoint(lab: Lab) -> None:
    for change in sample()[::4]:
        row = lab.rows[change.kind]
        lab.write(tampered(row, change.path))
        assert row.position in lab.found_by_checkpoint(), change
        lab.write(row)
    lab.process.tree_keeper.restart()
    assert lab.report().checkpoints != []
    assert len(lab.found_by_checkpoint()) == 0


def drop(lab: Lab, positions: list[int]) -> set[int]:
    lab.remove(positions[20])
    return {positions[20]}


def swap(lab: Lab, positions: list[int]) -> set[int]:
    first, second, free = positions[10], positions[40], positions[-1] + 1_000
    for origin, to in ((first, free), (second, first), (free, second)):
        lab.move(origin, to)
    return {first, second}


def insert(lab: Lab, positions: list[int]) -> set[int]:
    """Put an event in where another one was, and move all later ones up by one."""
    rows = [*lab.rows.values()]
    for position in reversed(positions[31:]):
        lab.move(position, position + 1)
    lab.insert(rows[30]._replace(position=positions[30] + 1, version=2))
    return {positions[31]}


def truncate(lab: Lab, positions: list[int]) -> set[int]:
    for position in positions[-3:]:
        lab.remove(position)
    return {*positions[-3:]}


@pytest.mark.parametrize("crime", [drop, swap, insert, truncate])
def test_events_that_are_dropped_put_in_moved_or_cut_off_are_found(
    lab: Lab, crime: Callable[[Lab, list[int]], set[int]]
) -> None:
    positions = [row.position for row in lab.rows.values()]
    expected = crime(lab, positions)
    found = lab.found_by_leaves()
    assert min(found) == min(expected)
    assert expected <= found
    assert min(expected) in lab.found_by_checkpoint()


def lose(process: Process) -> None:
    server = Discontinuity.notice("server-2", process.log.head(), 10**6, process.cause())
    process.log.append(server)


def set_the_clock_back(process: Process) -> None:
    clock = process.clock
    clock.now -= timedelta(hours=3)
    look_up(process, process.organization("1.00", "Yesterday"), numbers(1)[0])
    clock.now += timedelta(hours=3)


def charge_late(process: Process) -> None:
    organization = process.organization("5.00", "Late")
    process.log.append(Month.close("2026-02", process.cause()))
    create_job(process, organization, numbers(2))


def erase(process: Process) -> None:
    erase_months(process.vault, "2026-04")
    clock = process.clock
    clock.forward(days=31)  # Into a month with a key.


@pytest.mark.parametrize("happening", [lose, set_the_clock_back, charge_late, erase])
@sqlite_only("the auditor reads events, whatever holds them")
def test_what_is_honest_is_not_accused(
    installation: Installation, happening: Callable[[Process], None]
) -> None:
    process = installation.process(SetClock())
    organization = process.organization("5.00")
    look_up(process, organization, numbers(1)[0])
    clock = process.clock
    clock.forward(minutes=2)
    process.checkpoints.make()
    happening(process)
    look_up(process, organization, numbers(1)[0])
    clock.forward(minutes=2)
    process.checkpoints.make()
    report = check_log(process.log, witnesses=process.witnesses())
    assert report.failures == []
    assert report.leaves == report.events


@pytest.mark.soak
def test_every_field_of_every_kind_is_found(lab: Lab, tmp_path: Path) -> None:
    signed = _note_outside(lab, tmp_path)
    assert not _verifier_convicts(lab, tmp_path, signed), "nothing is changed yet"
    table = defaultdict[str, Counter[str]](Counter)
    for change in CHANGES:
        row, told = lab.rows[change.kind], table[change.kind]
        lab.write(tampered(row, change.path))
        told["fields"] += 1
        told["leaves"] += lab.found_by_leaves() == {row.position}
        told["checkpoint"] += row.position in lab.found_by_checkpoint()
        told["verifier"] += _verifier_convicts(lab, tmp_path, signed)
        lab.write(row)
        lab.process.tree_keeper.restart()
    finders = ("fields", "leaves", "checkpoint", "verifier")
    tell("kind", *finders)
    for kind in KINDS:
        tell(kind, *(table[kind][each] for each in finders))
    total = [sum(told[each] for told in table.values()) for each in finders]
    tell("all", *total)
    assert set(total) == {len(CHANGES)}


def tell(name: str, *figures: object) -> None:
    """Print a line of the table; pytest shows it with -s, and where the test fails."""
    sys.stdout.write(f"{name:44}{''.join(f'{each!s:>12}' for each in figures)}\n")


def _note_outside(lab: Lab, folder: Path) -> list[str]:
    """Sign the whole log as an outsider has kept it; return the verifier's options."""
    keys = CheckpointKeys(folder / "keys", lab.process.clock)
    checkpoint = lab.outside[-1].checkpoint
    (folder / "note.txt").write_text(keys.sign(checkpoint).note, "utf-8")
    line = verifier_key(checkpoint.origin, keys.newest().public_key)
    return ["--checkpoint", str(folder / "note.txt"), "--key", line]


def _verifier_convicts(lab: Lab, folder: Path, options: list[str]) -> bool:
    """Export the log and hold it against the outsider's note.

    What else the verifier says does not count: by the rules of wallets this log is nonsense.
    """
    file, told = folder / "log.jsonl", StringIO()
    with file.open("wb") as export:
        export.writelines(Export(lab.process.log, lab.process.log.head()).lines())
    with redirect_stdout(told):
        verify.main([str(file), *options])
    return "ok       checkpoint note.txt" not in told.getvalue()
