"""What the documents point at is there; decisions have numbers that one can refer to."""

import re
from pathlib import Path

import pytest

from tests.tidy.source import PACKAGES, ROOT

ROOMS = (*PACKAGES, "tests", "docs", "ops", ".ci")
PLACES = "|".join(map(re.escape, ROOMS))
NAMED = re.compile(rf"`((?:{PLACES})/[\w./-]*|[A-Z]+\.md|[\w.-]+\.(?:cfg|toml|in|lock))`", re.ASCII)
LINK = re.compile(r"\]\(([\w./-]+)(?:#[\w-]*)?\)")
PART = re.compile(r"\]\(([\w./-]*\.md|)#([\w-]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
OF_THE_PAST = {"CHANGELOG.md"}  # It may name files that have moved since.
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    if path.name not in OF_THE_PAST
)

DECISIONS = (ROOT / "DECISIONS.md").read_text("utf-8")
LINES_MAX = 6
ENTRY = re.compile(r"- \*\*(\d+)\. .+")
MORE = r"(?:\s*[,–-]\s*|,?\s+(?:and|to)\s+)\d+"
REFERENCE = re.compile(rf"\bdecisions?\s+(\d+(?:{MORE})*)", re.IGNORECASE)
REFERRING = {"", ".c", ".cfg", ".in", ".md", ".py", ".sh", ".toml", ".yaml", ".yml"}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_a_document_names_exists(document: str) -> None:
    path, text = ROOT / document, (ROOT / document).read_text("utf-8")
    places = [ROOT / name for name in NAMED.findall(text)]
    places += [path.parent / link for link in LINK.findall(text)]
    assert sorted({str(place) for place in places if not place.exists()}) == []


def _parts_of(path: Path) -> set[str]:
    """Return the names by which links lead to the headings of a document."""
    titles = HEADING.findall(BLOCK.sub("", path.read_text("utf-8")))
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_part_of_a_document_that_a_link_names_exists(document: str) -> None:
    path = ROOT / document
    lost = [
        f"{name}#{part}"
        for name, part in PART.findall(path.read_text("utf-8"))
        if part not in _parts_of(path.parent / name if name else path)
    ]
    assert lost == []


def _entries(topic: str) -> dict[int, int]:
    """Return how many lines each decision of a topic has; every line belongs to one."""
    number, lengths = 0, dict[int, int]()
    for line in topic.splitlines()[1:]:
        if found := ENTRY.fullmatch(line):
            number = int(found[1])
            assert number not in lengths, f"decision {number} is there twice"
            lengths[number] = 1
        elif line:
            assert number > 0, f"belongs to no decision: {line}"
            assert line.startswith("  "), f"belongs to no decision: {line}"
            lengths[number] += 1
    return lengths


def test_each_decision_has_one_number_and_few_lines() -> None:
    topics = [_entries(each) for each in re.split(r"^## ", DECISIONS, flags=re.MULTILINE)[1:]]
    numbers = [number for topic in topics for number in topic]
    assert len(numbers) == len({*numbers}), "a number is given once"
    assert all([*topic] == sorted(topic) for topic in topics), "a new one goes to the end"
    too_long = [n for topic in topics for n, lines in topic.items() if lines > LINES_MAX]
    assert too_long == []


def test_every_decision_that_is_referred_to_exists() -> None:
    known = {*re.findall(r"^- \*\*(\d+)\. ", DECISIONS, re.MULTILINE)}
    files = [*ROOT.glob("*"), *(path for room in ROOMS for path in (ROOT / room).rglob("*"))]
    unknown = {
        f"{path.relative_to(ROOT)}: {number}"
        for path in files
        if path.suffix in REFERRING and "node_modules" not in path.parts and path.is_file()
        for numbers in REFERENCE.findall(path.read_text("utf-8", errors="replace"))
        for number in re.findall(r"\d+", numbers)
        if number not in known
    }
    assert sorted(unknown) == []
