"""What the documents point at is there; the index and the marks of DECISIONS.md are complete."""

import re
from pathlib import Path

import pytest

from tests.tidy.source import PACKAGES, ROOT

PLACES = "|".join((*PACKAGES, "tests", "docs", "ops", r"\.ci"))
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
TITLES = {int(n): title for n, title in re.findall(r"^## (\d+)\. (.+)$", DECISIONS, re.MULTILINE)}
LISTED = re.compile(r"^- (\d+)\. (.+?)(?: \((in part )?replaced by ([\d, ]+)\))?$", re.MULTILINE)
MARK = re.compile(r"\*(Replaced by|Replaces|Replaces of) (\d+)(?:: ([^*]+))?\.\*")


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
    links = PART.findall(path.read_text("utf-8"))
    lost = [
        f"{name}#{part}"
        for name, part in links
        if part not in _parts_of(path.parent / name if name else path)
    ]
    assert lost == []


def test_decisions_are_numbered_without_a_gap_and_each_is_in_the_index() -> None:
    listed = {(int(n), title) for n, title, *_ in LISTED.findall(DECISIONS)}
    numbers = re.findall(r"^## (\d+)\.", DECISIONS, re.MULTILINE)
    assert [*map(int, numbers)] == [*range(1, len(TITLES) + 1)], "a number is given once"
    assert listed == {*TITLES.items()}, "each decision needs its line in the index"


def _marks() -> tuple[set[tuple[int, int, str]], set[tuple[int, int, str]]]:
    """Return what is replaced by what, as the older decisions say it and as the newer ones do."""
    older, newer, number = set(), set(), 0
    for line in DECISIONS.splitlines():
        if title := re.match(r"## (\d+)\. ", line):
            number = int(title[1])
        for kind, other, part in MARK.findall(line) if number else ():
            assert (kind == "Replaces of") <= bool(part), line
            if kind == "Replaced by":
                older.add((number, int(other), part))
            else:
                newer.add((int(other), number, part))
    return older, newer


def test_what_replaces_a_decision_and_what_is_replaced_name_each_other() -> None:
    older, newer = _marks()
    assert older == newer
    assert all(one < other for one, other, _ in older)


def test_the_index_tells_what_was_replaced() -> None:
    told = set()
    for number, _, in_part, others in LISTED.findall(DECISIONS):
        told |= {(int(number), int(each), bool(in_part)) for each in re.findall(r"\d+", others)}
    assert told == {(one, other, bool(part)) for one, other, part in _marks()[0]}
