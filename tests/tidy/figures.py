"""How large the house is: the figures of the ratchet, each measured from the files of the tree.

    python -m tests.tidy.figures          what each is now, beside its line of ratchet.txt
    python -m tests.tidy.figures --write  and lower the lines to it, but for files of a request

A line of ratchet.txt is a figure and its ceiling. `allowance NAME` is what that figure, and each
of the rooms that it adds up, may exceed for now. `path::function` is a function that is too long.
"""

import ast
import dataclasses
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from math import ceil
from pathlib import Path

from app.bootstrap.container import Container
from app.cli.root import cli
from app.settings import Settings
from app.watch.gauges import GAUGES
from app.watch.metrics import METRICS
from tests.app.cli.test_root import leaves
from tests.tidy.source import PACKAGES, ROOT, sources
from tests.tidy.words import riddles

RATCHET = Path(__file__).with_name("ratchet.txt")
ALLOWANCE = "allowance "
# The width that a line of text may have. Whoever joins lines into a long one gains nothing; the
# lines of Python have a rule of their own.
WIDTH = 120
ON_THE_WAY = re.compile(r"^(lookup|job|link): (\d+) files", re.MULTILINE)
WAYS_TIMEOUT_S = 100


def read() -> dict[str, int]:
    """Return the lines of ratchet.txt by their names."""
    lines = RATCHET.read_text("utf-8").splitlines()
    pairs = (line.rsplit(maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {name: int(value) for name, value in pairs}


def measured() -> dict[str, int]:
    """Measure all but the files on the way of a request, which need a service that runs."""
    return {**_lines(), **_names()}


def ways() -> dict[str, int]:
    """Return how many files a lookup, a job and a link pass, each of eight times."""
    command = [sys.executable, "-m", "tests.tidy.paths"]
    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=WAYS_TIMEOUT_S, check=True
    )
    return {f"files of a {name}": int(count) for name, count in ON_THE_WAY.findall(run.stdout)}


def above(found: Mapping[str, int], lines: Mapping[str, int], slack: int = 0) -> list[str]:
    """Return what is above its line, with the difference; a figure without a line is above it."""
    return [
        f"{name}: {value}, {value - ceiling} above its line"
        for name, value in found.items()
        if value > (ceiling := lines.get(name, 0) + _allowance(name, lines) + slack)
    ]


def _allowance(name: str, lines: Mapping[str, int]) -> int:
    whole = "product" if name.partition("/")[0] in PACKAGES else name
    return lines.get(ALLOWANCE + whole, 0)


def _lines() -> dict[str, int]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    counts = Counter[str]()
    for name in names.splitlines():
        is_picture = name.endswith(".png")  # It has no lines.
        if not is_picture and (room := _room(name)) and (ROOT / name).is_file():
            text = (ROOT / name).read_text("utf-8", errors="replace").splitlines()
            is_python = name.endswith(".py")
            counts[room] += len(text) if is_python else sum(map(rows_of, text))
            if is_python and room.partition("/")[0] in PACKAGES:
                counts["product"] += len(text)
                counts["files"] += 1
    return dict(counts)


def rows_of(line: str) -> int:
    """Return how many lines a line of text counts as."""
    return max(1, ceil(len(line) / WIDTH))


def _room(name: str) -> str:
    """Return which figure a file adds to; empty: none, as for locks and licences."""
    top, *rest = name.split("/")
    if name.endswith(".md"):
        return "Markdown"
    if top in PACKAGES:
        if not name.endswith(".py"):
            return "templates, static files and data"
        return f"app/{rest[0]}" if top == "app" and len(rest) > 1 else top
    if top == "tests":
        is_recording = name.startswith("tests/net/recordings/")
        return "recordings" if is_recording else "tests" if name.endswith(".py") else "test data"
    if top == "docs":
        return "docs/verifier" if name.endswith(".py") else "docs, not Markdown"
    return "ops" if top == "ops" else ""


def _names() -> dict[str, int]:
    files = [*sources(*PACKAGES)]
    nodes = [node for each in files for node in ast.walk(each.tree)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    protocols = [each for each in classes if any("Protocol" in ast.unparse(b) for b in each.bases)]
    parts = Container(Settings.from_env({}))
    own = [name for each in parts.own_tables for held in each.tables for name in held.tables]
    tables = {*own, *(table.name for model in parts.models for table in model.tables)}
    return {
        "classes": len(classes),
        "protocols": len(protocols),
        "settings": len(dataclasses.fields(Settings)),
        "commands": len([*leaves(cli)]),
        "tables": len(tables),
        "metrics": len(GAUGES) + sum(map(len, METRICS.values())),
        "riddles": sum(1 for each in files for _ in riddles(each)),
    }


def main() -> None:
    lines, found = read(), {**measured(), **ways()}
    for name, value in sorted(found.items()):
        sys.stdout.write(f"{name} {value} ({value - lines.get(name, 0):+})\n")
    if "--write" in sys.argv:
        lowered = {name: min(value, lines.get(name, value)) for name, value in measured().items()}
        text = RATCHET.read_text("utf-8")
        for name, value in lowered.items():
            text = re.sub(rf"^{re.escape(name)} \d+$", f"{name} {value}", text, flags=re.MULTILINE)
        RATCHET.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
