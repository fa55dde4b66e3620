"""The samples of the guides run as they stand, in each language, against a service of their own.

The blocks of one language on one page are one program. It begins with those under "Set up" of the
quick start, as a reader's does.
"""

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from app.http.docs import GUIDES
from tests.app.cli.shell import ROOT
from tests.app.http.clients.test_clients import run
from tests.house.running import Served
from tests.servers.fixtures import missing

BLOCK = re.compile(r"^```(bash|python|javascript)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {"bash": "sample.sh", "python": "sample.py", "javascript": "sample.mjs"}
COMMANDS = {
    "bash": ["bash", "-euo", "pipefail"],
    "python": [sys.executable],
    "javascript": ["node"],
}
NEEDED = {"bash": ["bash", "curl", "jq"], "python": [], "javascript": ["node"]}
SET_UP = (GUIDES / "quick-start.md").read_text("utf-8").partition("## Look up")[0]
OF_CLIENTS = "clients"  # Its samples need a generated client: tests/app/http/clients runs them.
PAGES = [
    name.stem
    for name in sorted(GUIDES.glob("*.md"))
    if name.stem != OF_CLIENTS and BLOCK.search(name.read_text("utf-8"))
]
# Each language, and each page in one of them; the others are for `make soak`.
SOAK = [pytest.mark.soak]
SAMPLES = [
    pytest.param(page, each, marks=[] if page == "quick-start" or each == "bash" else SOAK)
    for page in PAGES
    for each in FILES
]
SAMPLES.append(pytest.param(README := "README", "bash"))


def blocks(text: str, language: str) -> list[str]:
    return [code for found, code in BLOCK.findall(text) if found == language]


def walk(url: str) -> str:
    """Return the walk of the README without its credentials, which are in the environment."""
    text = (ROOT / "README.md").read_text("utf-8").partition("## In production")[0]
    lines = re.sub("^eval .*$", "", text.replace("```sh\n", "```bash\n"), flags=re.MULTILINE)
    code = ["set +o pipefail  # `head` ends before `curl`.", *blocks(lines, "bash")]
    return "\n".join(code).replace("http://127.0.0.1:8080", url)


def program(page: str, language: str, url: str) -> str:
    if page == README:
        return walk(url)
    text = (GUIDES / f"{page}.md").read_text("utf-8")
    parts = blocks(text if page == "quick-start" else SET_UP + text, language)
    return "\n".join(parts).replace("https://api.example", url)


def require(language: str) -> None:
    absent = [name for name in NEEDED[language] if shutil.which(name) is None]
    absent += [] if language != "python" or find_spec("requests") else ["requests"]
    if absent:
        missing(f"{absent} is not installed")


@pytest.mark.slow
@pytest.mark.parametrize(("page", "language"), SAMPLES)
def test_the_samples_of_a_page_run(
    serving: Served, tmp_path: Path, page: str, language: str
) -> None:
    require(language)
    file = tmp_path / FILES[language]
    file.write_text(program(page, language, serving.url), "utf-8")
    environment = {name.upper(): serving.demo[name] for name in ("client_id", "client_secret")}
    run(ROOT if page == README else tmp_path, *COMMANDS[language], file, **environment)


def test_every_sample_is_told_in_each_language() -> None:
    for page in PAGES:
        text = (GUIDES / f"{page}.md").read_text("utf-8")
        counts = {language: len(blocks(text, language)) for language in FILES}
        assert len({*counts.values()}) == 1, (page, counts)
