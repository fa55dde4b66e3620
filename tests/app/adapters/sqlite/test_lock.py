"""Locks on files: one holder among the processes of a machine, for as long as it lives."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.adapters.sqlite.file import FileLock
from tests.installation import wait_until

ROOT = Path(__file__).parents[4]
HOLD = """
import sys
from pathlib import Path

from app.adapters.sqlite.file import FileLock

lock = FileLock(Path(sys.argv[1]))
print(lock.acquire(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "service-projector.lock"


def test_one_of_two_holds_and_the_other_follows_at_once(path: Path) -> None:
    first, second = FileLock(path), FileLock(path)
    first.release()  # What is not held.
    for _ in range(2):
        assert first.acquire()
    assert path.stat().st_mode & 0o777 == 0o600, "nobody else can read it"
    assert not second.acquire()
    for _ in range(2):
        first.release()
    assert second.acquire()
    assert not first.acquire()
    second.release()


def test_a_lock_ends_with_the_process_that_holds_it(path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        lock = FileLock(path)
        assert not lock.acquire()
        holder.kill()
        wait_until(lock.acquire)
    lock.release()


def test_a_place_that_cannot_be_used_is_an_error_and_no_refusal(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "nowhere" / "file.lock").acquire()
