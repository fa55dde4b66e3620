"""Where the processor's time of a row goes: `python -m tests.bench.profile hot_wallet`.

Runs the row under py-spy and prints, for each kind of process, the shares of the samples that hold
the interpreter lock, by the innermost of our own files: what a library does counts for the file
that called it. Names of rows are those of `tests.bench`; what measures limits is left out, and so
are imports, which are the start of each process.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

SAMPLES_PER_S = 100  # Each one halts its process for a moment.
SHARE_MIN = 0.01  # Smaller ones are one line together.
OURS = ("app/", "domain/", "projections/", "workers/")
HERE = f"{Path.cwd()}/"
IMPORT = "_find_and_load ("
LIMITS = re.compile(r"tests[./]bench[./](peers|load)\b")  # A file, or what a process runs.
ROLES = ("web", "worker", "dispatcher", "projector", "serve")

Place = tuple[str, str]  # A kind of process and a file.


def main(rows: Sequence[str]) -> None:
    with TemporaryDirectory(prefix="profile-") as directory:
        file = Path(directory) / "stacks.txt"
        _record(rows, file)
        print(render(places(file.read_text("utf-8").splitlines())))


def _record(rows: Sequence[str], file: Path) -> None:
    sampled = ["record", "--gil", "--subprocesses", "--rate", str(SAMPLES_PER_S)]
    output = ["--full-filenames", "--format", "raw", "--output", str(file)]
    bench = [sys.executable, "-m", "tests.bench", *rows]
    spy = Path(sys.executable).with_name("py-spy")
    subprocess.run([spy, *sampled, *output, "--", *bench], check=True, env={**os.environ})


def places(stacks: Iterable[str]) -> Counter[Place]:
    """Count samples by place; a stack is `frame;frame;… count`, the outermost frame first."""
    counted = Counter[Place]()
    for line in stacks:
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        own = [file for file in map(_file, frames) if file.startswith(OURS)]
        if own and IMPORT not in stack and not LIMITS.search(stack):
            counted[_role(frames), own[-1]] += int(count)
    return counted


def _file(frame: str) -> str:
    """Read `frame (/path/file.py:3)`; a path of ours begins with its room."""
    return frame.rpartition("(")[2].partition(":")[0].removeprefix(HERE)


def _role(frames: Sequence[str]) -> str:
    """Tell what a process is by its command, or by that of the process which has started it.

    Its frames come first, parents before children: `process 1:"…";process 17:"… -m app worker"`.
    """
    for frame in reversed([each for each in frames if each.startswith("process ")]):
        words = frame.replace('"', " ").split()
        role = next((role for role in ROLES if role in words), None)
        if role is not None:
            return role
    return "bench"


def render(counted: Counter[Place]) -> str:
    """Write a table in Markdown, the largest share first."""
    total = counted.total()
    lines = ["| Process | Where | Share |", "|---|---|---|"]
    rest = 0
    for (role, file), count in counted.most_common():
        if count < SHARE_MIN * total:
            rest += count
            continue
        lines.append(f"| {role} | `{file}` | {count / total:.0%} |")
    lines.append(f"| | others | {rest / max(1, total):.0%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
