"""A release by one command: its version in the document, its notes and the order of its upgrade.

    make release VERSION=1.1.0

It looks at what has changed since the commit that named the release before, and refuses, with each
reason, while a stored event has another form than it had, while the document lacks a word that
partners may use, or while a change log does not name what the document has got. Then it writes the
version and the headings, and prints what the people who upgrade read. It commits nothing.
"""

import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app.http.edge.openapi import FACTS
from tests.net.document import served
from tests.servers.running import free_port
from tests.tidy.source import PACKAGES, ROOT

METHODS = {"get", "post", "put", "patch", "delete"}
VERSION = re.compile(r"\d+\.\d+\.\d+")
UNRELEASED = "## Unreleased\n"
OPERATORS, PARTNERS = Path("CHANGELOG.md"), Path("docs/partners/changelog.md")
PAGES = Path("docs/partners")
CODE = re.compile(r"```(?:.|\n)*?```|`[^`]+`")
ORDER = "## Upgrade and roll back\n"


def words(document: Any) -> set[str]:
    """Return the words of an OpenAPI document that a client may use.

    Its operations, such as `GET /v1/links`, and the names of members and parameters, the values
    that a member may have, and the codes of errors.
    """
    paths = document["paths"].items()
    operations = {
        f"{each.upper()} {path}" for path, members in paths for each in METHODS & {*members}
    }
    return operations | {*_names(document)}


def _names(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "in" in node and isinstance(name := node.get("name"), str):
            yield name
        for key in ("properties", "enum", "x-error-codes"):
            yield from map(str, node.get(key) or ())
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _names(each)


def unnamed(found: set[str], text: str) -> list[str]:
    """Return which words stand in no piece of code of a text."""
    codes = {" ".join(each.strip("`").split()) for each in CODE.findall(text)}
    parts = {part for code in codes for part in re.findall(r"[\w.]+", code)}
    return sorted(found - codes - parts)


def section(text: str, heading: str) -> str:
    """Return what stands under a heading of the second level; "" without it."""
    return text.partition(heading)[2].partition("\n## ")[0]


def reasons(
    events: Sequence[str], before: set[str], after: set[str], notes: Mapping[Path, str]
) -> Iterator[str]:
    """Yield why this is no release yet: what broke, and what no page names.

    Operations, codes of errors and types of events stand in the change logs (operations in both);
    the names of members stand at least in a page for partners.
    """
    yield from (f"{each}: a stored form must stay as it was" for each in events)
    yield from (
        f"{each}: clients use it, and the document has lost it" for each in sorted(before - after)
    )
    added = after - before
    operations = {each for each in added if " " in each}
    loud = operations | {each for each in added if "." in each or each.isupper()}
    for path, needed in ((OPERATORS, operations), (PARTNERS, loud), (PAGES, added - loud)):
        yield from (f"{each}: {path} does not name it" for each in unnamed(needed, notes[path]))


def _git(*arguments: str) -> bytes:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout


def _released(version: str) -> str:
    """Return the commit that wrote the heading of a release into the change log."""
    found = _git("log", "--format=%H", f"-S## {version}", "--", str(OPERATORS)).split()
    if not found:
        sys.exit(
            f"no commit here names {version} in {OPERATORS}: a clone with its history is needed"
        )
    return found[-1].decode()


def _pair(commit: str) -> tuple[set[str], set[str]]:
    archive = _git("archive", commit, *PACKAGES)
    with TemporaryDirectory() as old, tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(old, filter="data")
        return words(served(Path(old), free_port())), words(served(ROOT, free_port()))


def _replace(path: Path, before: str, after: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    assert before in text, (path, before)
    (ROOT / path).write_text(text.replace(before, after, 1), "utf-8")


def main(version: str) -> None:
    present = FACTS["version"]
    if not VERSION.fullmatch(version) or _number(version) <= _number(present):
        sys.exit(f'"{version}" is no version after {present}; give one: make release VERSION=1.2.3')
    commit = _released(present)
    changed = _git("diff", "--name-only", "--diff-filter=a", commit, "--", "tests/golden/events")
    texts = {each: (ROOT / each).read_text("utf-8") for each in (OPERATORS, PARTNERS)}
    notes = {each: section(text, UNRELEASED) for each, text in texts.items()}
    pages = "\n".join(each.read_text("utf-8") for each in (ROOT / PAGES).glob("*.md"))
    found = [*reasons(changed.decode().splitlines(), *_pair(commit), {**notes, PAGES: pages})]
    if found:
        sys.exit("\n".join(found))
    heading = f"## {version} ({datetime.now(UTC):%Y-%m-%d})\n"
    for each in (OPERATORS, PARTNERS):
        _replace(each, UNRELEASED, heading)
    _replace(Path("app/http/edge/openapi.py"), f'"version": "{present}"', f'"version": "{version}"')
    order = section((ROOT / "docs/deployment.md").read_text(), ORDER).partition("\n### ")[0]
    sys.stdout.write(f"{heading}{notes[OPERATORS]}\n## The order of the upgrade\n{order}\n")


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


if __name__ == "__main__":
    main(*sys.argv[1:])
