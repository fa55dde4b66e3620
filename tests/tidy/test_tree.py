"""The whole repository keeps the house rules."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tidy import rules
from tests.tidy.source import PACKAGES, Source, sources

RATCHET = Path(__file__).with_name("ratchet.txt")
EVERYTHING = (*PACKAGES, "tests")


def ratchet() -> dict[str, int]:
    """Read the tolerated sizes: `path::function lines`, one a line."""
    entries = (line.split() for line in RATCHET.read_text("utf-8").splitlines())
    return {entry[0]: int(entry[1]) for entry in entries if entry and entry[0] != "#"}


def test_functions_keep_their_limit_and_the_ratchet_only_tightens() -> None:
    measured = {
        name: lines
        for source in sources(*EVERYTHING)
        for name, lines in rules.oversized(source).items()
    }
    assert measured == ratchet()


@pytest.mark.parametrize(
    ("rule", "rooms"),
    [
        (rules.long_lines, EVERYTHING),
        (rules.suppressions_without_reason, EVERYTHING),
        (rules.missing_docstring, PACKAGES),
        (rules.unfinished, PACKAGES),
        (rules.unannotated, PACKAGES),
        (rules.sleeps, ("tests",)),
    ],
)
def test_no_file_breaks_the_rule(
    rule: Callable[[Source], Iterator[str]], rooms: tuple[str, ...]
) -> None:
    findings = [finding for source in sources(*rooms) for finding in rule(source)]
    assert not findings, "\n".join(findings)


def test_only_the_settings_read_the_environment() -> None:
    findings = [
        finding
        for source in sources(*PACKAGES)
        if source.path != "app/settings.py"
        for finding in rules.environment_reads(source)
    ]
    assert not findings, "\n".join(findings)


def test_the_domain_imports_only_the_standard_library_eventsourcing_and_msgspec() -> None:
    findings = [
        finding
        for source in sources("domain")
        for finding in rules.foreign_imports(source, rules.DOMAIN_MAY_IMPORT)
    ]
    assert not findings, "\n".join(findings)
