"""Says whether this tree does what a commit before it does: `python -m tests.simulation.compare`.

Each seed's story is replayed with the product of both, by the tests of this tree: first without
interleaving, where answers, calls at the port, wallet entries and states must be equal, then by
the simulation, in which others come between and which must end well on both.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

ROOT = Path(__file__).parents[2]
SEEDS = 20
SHOWN_MAX = 5  # Seeds whose first difference is told.
NOTHING = "nothing"
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else gettempdir()  # noqa: S108  # As for tests.
KINDS = ("stock", "order")


def check_out(commit: str, into: Path) -> None:
    """Put the product of a commit into a directory, with the tests of this tree."""
    command = ["git", "archive", commit, ".", ":!tests"]
    packed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(into, filter="data")
    (into / "tests").symlink_to(ROOT / "tests")


def start(tree: Path, *arguments: object) -> "subprocess.Popen[str]":
    """Start the replay in a tree; its output is a line for each seed."""
    command = [sys.executable, "-m", "tests.simulation.replay", *map(str, arguments)]
    environment = {"TMPDIR": MEMORY, **os.environ, "PYTHONPATH": str(tree)}
    return subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    )


def first_difference(before: list[Any], after: list[Any]) -> str | None:
    """Say in words where two replays of a seed come apart, None if nowhere."""
    for one, other in zip_longest(before, after, fillvalue={"request": NOTHING}):
        for what in one | other:
            was, is_now = one.get(what, NOTHING), other.get(what, NOTHING)
            if was == is_now:
                continue
            if isinstance(was, dict) and isinstance(is_now, dict):
                of = next(name for name in was | is_now if was.get(name) != is_now.get(name))
                return _told(one, f"{what} of {of}", was.get(of, NOTHING), is_now.get(of, NOTHING))
            return _told(one, what, was, is_now)
    return None


def _told(came_of: dict[str, Any], what: str, before: object, after: object) -> str:
    return f"{came_of['request']}\n  {what}\n    before: {before}\n    after:  {after}"


def compare(old: Path, kind: str, seeds: int) -> int:
    """Replay seeds on both trees, tell the first differences, and return how many seeds differ."""
    both = [start(tree, kind, seeds) for tree in (old, ROOT)]
    differing = 0
    for seed in range(seeds):
        lines = [each.stdout.readline() if each.stdout else "" for each in both]
        assert all(lines), f"seed {seed} of {kind}: the replay has ended; see above"
        before, after = map(json.loads, lines)
        if difference := first_difference(before, after) or after[-1].get("fails"):
            differing += 1
            if differing <= SHOWN_MAX:
                print(f"{kind}, seed {seed}: {difference}", flush=True)  # noqa: T201  # The report.
    for each in both:
        each.communicate()
    return differing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="the commit before")
    parser.add_argument("seeds", nargs="?", type=int, default=SEEDS, help="how many")
    given = parser.parse_args()
    with TemporaryDirectory(dir=MEMORY) as directory:
        check_out(given.commit, Path(directory))
        differing = [compare(Path(directory), kind, given.seeds) for kind in KINDS]
    for kind, count in zip(KINDS, differing, strict=True):
        print(f"{kind}: {given.seeds} seeds, {count} differ")  # noqa: T201  # The report.
    return int(any(differing))


if __name__ == "__main__":
    sys.exit(main())
