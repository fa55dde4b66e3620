"""Each house rule, shown on a file that breaks it and on one that does not."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.tidy import rules
from tests.tidy.source import Source
from tests.tidy.words import riddles

HOME = "import json\nfrom domain.money import MICROS\n"
FIELD = 'class A:\n    class Kept(Event):\n        kept: int\n        TOPIC = "a.kept"\n'
FOREIGN = partial(rules.foreign_imports, allowed=rules.DOMAIN_MAY_IMPORT)
# A rule, lines that break it, and a file that keeps it.
RULES: list[tuple[Callable[[Source], Iterator[str]], list[str], str]] = [
    (
        rules.unfinished,
        [f"x = 1  # {e}" for e in ("TODO", "FIXME", "NotImplementedError", "Placeholder")],
        "x = 1  # Done.",
    ),
    (
        rules.sleeps,
        ["time.sleep(1)", "from time import sleep", "asyncio.sleep(1)"],
        "condition.wait(1)",
    ),
    (
        rules.environment_reads,
        ["os.environ['A']", "os.getenv('A')", "from os import environ"],
        "settings.environ",
    ),
    (FOREIGN, ["import flask", "from app.http import api", "from . import x"], HOME),
    (
        rules.imports_of_nothing,
        ["from tests.tidy.source import Sauce"],
        "from tests.tidy.source import Source",
    ),
    (
        riddles,
        ["def tell(): ...", "class HeldRows: ...", "f = lambda asked: 1", "a.LOOK_S = told = 1"],
        f"def look_up(placed_at): ...\nfor each in found: log.find(tell=told)\n{FIELD}",
    ),
]


def written(text: str) -> Source:
    return Source("domain/sample.py", text)


@pytest.mark.parametrize(("rule", "broken", "kept"), RULES)
def test_a_rule_finds_what_breaks_it_and_nothing_else(
    rule: Callable[[Source], Iterator[str]], broken: list[str], kept: str
) -> None:
    assert [text for text in broken if not [*rule(written(f"{text}\n"))]] == []
    assert [*rule(written(f"{kept}\n"))] == []


def test_a_function_over_the_limit_is_measured_by_its_dotted_name() -> None:
    def with_lines(count: int) -> Source:
        body = "        x = 1\n" * (count - 1)
        return written(f"class Wallet:\n    async def charge(self):\n{body}")

    assert rules.oversized(with_lines(40)) == {}
    assert rules.oversized(with_lines(41)) == {"domain/sample.py::Wallet.charge": 41}


@pytest.mark.parametrize(
    "comment",
    ["# noqa: S101", "# noqa", "# type: ignore[misc]", "# ruff: noqa: D1", "# noqa: S1  # ok"],
)
def test_a_suppression_needs_its_reason(comment: str) -> None:
    """One reason serves two, and what stands inside a string is none."""
    assert list(rules.suppressions_without_reason(written(f"x = 1  {comment}\n")))
    for line in (f"x = 1  {comment} - a constant of ours", f'x = "{comment}"'):
        assert list(rules.suppressions_without_reason(written(f"{line}\n"))) == []
    two = "x = 1  # type: ignore[misc]  # noqa: S608 - the table is a constant\n"
    assert list(rules.suppressions_without_reason(written(two))) == []
