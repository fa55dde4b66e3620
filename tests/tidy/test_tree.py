"""The whole repository keeps the house rules."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.tidy import figures, rules
from tests.tidy.source import PACKAGES, Source, sources

EVERYTHING = (*PACKAGES, "tests")
OWED = "A figure only falls: cut as much elsewhere (CONTRIBUTING.md, or tests/tidy/words.py)."
# On a crowded machine followers may do the same beside all three requests.
WAYS_SLACK = 2
SETTINGS = "app/settings.py"  # Only it may read the environment.


def reads_outside_the_settings(source: Source) -> Iterator[str]:
    return iter(()) if source.path == SETTINGS else rules.environment_reads(source)


RULES: list[tuple[Callable[[Source], Iterator[str]], tuple[str, ...]]] = [
    (rules.suppressions_without_reason, EVERYTHING),
    (rules.unfinished, PACKAGES),
    (rules.sleeps, ("tests",)),
    (rules.imports_of_nothing, ("tests",)),
    (reads_outside_the_settings, PACKAGES),
    (partial(rules.foreign_imports, allowed=rules.DOMAIN_MAY_IMPORT), ("domain",)),
]


def test_no_file_breaks_a_rule_and_the_ratchet_only_tightens() -> None:
    """In one walk, because to parse every file takes longer than all of the rules."""
    measured: dict[str, int] = {}
    findings: list[str] = []
    for source in sources(*EVERYTHING):
        measured |= rules.oversized(source)
        for rule, rooms in RULES:
            if source.path.partition("/")[0] in rooms:
                findings.extend(rule(source))
    assert not findings, "\n".join(findings)
    assert measured == {name: size for name, size in figures.read().items() if "::" in name}


def test_no_figure_of_the_house_is_above_its_line() -> None:
    rises = figures.above(figures.measured(), figures.read())
    assert not rises, "\n".join([*rises, OWED])


def test_no_request_passes_more_files_than_its_line_says() -> None:
    found = figures.ways()
    assert {*found} == {name for name in figures.read() if name.startswith("files of a ")}
    rises = figures.above(found, figures.read(), slack=WAYS_SLACK)
    assert not rises, "\n".join([*rises, OWED])


def test_a_rise_is_named_with_its_difference_and_an_allowance_holds_for_rooms_too() -> None:
    lines = {"product": 10, "app/http": 4, "allowance product": 2}
    assert figures.above({"product": 12, "app/http": 6}, lines) == []
    assert figures.above({"app/http": 7, "new": 1}, lines) == [
        "app/http: 7, 1 above its line",
        "new: 1, 1 above its line",
    ]


@pytest.mark.parametrize(("line", "rows"), [("", 1), ("x" * 120, 1), ("x" * 121, 2)])
def test_a_long_line_of_text_counts_as_the_lines_it_hides(line: str, rows: int) -> None:
    assert figures.rows_of(line) == rows
