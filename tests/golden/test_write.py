"""Golden files are added and never changed."""

import subprocess
import sys
from pathlib import Path

from tests.golden.files import EVENTS_FOLDER, canonical_files
from tests.golden.write import write_missing

ROOT = Path(__file__).parents[2]


def test_a_missing_file_is_written_and_an_existing_one_is_kept(tmp_path: Path) -> None:
    missing, same, other = (tmp_path / "new" / "missing", tmp_path / "same", tmp_path / "other")
    same.write_bytes(b"1")
    other.write_bytes(b"old")
    assert write_missing({missing: b"1", same: b"1", other: b"new"}) == [other]
    assert [path.read_bytes() for path in (missing, same, other)] == [b"1", b"1", b"old"]


def test_the_files_of_today_are_all_there() -> None:
    assert set(canonical_files()) <= {*EVENTS_FOLDER.iterdir()}


def test_the_command_changes_nothing_when_everything_is_there() -> None:
    before = {path: path.stat().st_mtime_ns for path in canonical_files()}
    done = subprocess.run([sys.executable, "-m", "tests.golden.write"], cwd=ROOT, check=False)
    assert done.returncode == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
