"""The whole repository keeps the house rules."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.tidy import rules
from tests.tidy.source import PACKAGES, Source, sources

RATCHET = Path(__file__).with_name("ratchet.txt")
EVERYTHING = (*PACKAGES, "tests")
SETTINGS = "app/settings.py"  # Only it may read the environment.


def reads_outside_the_settings(source: Source) -> Iterator[str]:
    return iter(()) if source.path == SETTINGS else rules.environment_reads(source)


RULES: list[tuple[Callable[[Source], Iterator[str]], tuple[str, ...]]] = [
    (rules.long_lines, EVERYTHING),
    (rules.suppressions_without_reason, EVERYTHING),
    (rules.missing_docstring, PACKAGES),
    (rules.unfinished, PACKAGES),
    (rules.unannotated, PACKAGES),
    (rules.sleeps, ("tests",)),
    (reads_outside_the_settings, PACKAGES),
    (partial(rules.foreign_imports, allowed=rules.DOMAIN_MAY_IMPORT), ("domain",)),
]


def ratchet() -> dict[str, int]:
    """Read the tolerated sizes: `path::function lines`, one a line."""
    entries = (line.split() for line in RATCHET.read_text("utf-8").splitlines())
    return {entry[0]: int(entry[1]) for entry in entries if entry and entry[0] != "#"}


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
    assert measured == ratchet()
