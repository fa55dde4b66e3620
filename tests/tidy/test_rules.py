"""Each house rule, shown on a file that breaks it and on one that does not."""

import pytest

from tests.tidy import rules
from tests.tidy.source import Source


def written(text: str) -> Source:
    return Source("domain/sample.py", text)


def test_a_function_over_the_limit_is_measured_by_its_dotted_name() -> None:
    def with_lines(count: int) -> Source:
        body = "        x = 1\n" * (count - 1)
        return written(f"class Wallet:\n    async def charge(self):\n{body}")

    assert rules.oversized(with_lines(40)) == {}
    assert rules.oversized(with_lines(41)) == {"domain/sample.py::Wallet.charge": 41}


def test_a_long_line_is_found() -> None:
    assert list(rules.long_lines(written(f"{'x' * 100}\n"))) == []
    assert list(rules.long_lines(written(f"a\n{'x' * 101}\n"))) == [
        "domain/sample.py:2: 101 characters"
    ]


def test_a_suppression_and_its_reason_may_pass_the_line_limit() -> None:
    line = f"{'x' * 90}  # noqa: S608 - the name of the table is a constant of ours\n"
    assert list(rules.long_lines(written(line))) == []


def test_a_module_without_a_docstring_is_found() -> None:
    assert list(rules.missing_docstring(written('"""What lives here."""\n'))) == []
    assert list(rules.missing_docstring(written("x = 1\n")))


@pytest.mark.parametrize(
    "comment",
    ["# noqa: S101", "# noqa", "# type: ignore[misc]", "# ruff: noqa: D1", "# noqa: S1  # ok"],
)
def test_a_suppression_needs_its_reason(comment: str) -> None:
    assert list(rules.suppressions_without_reason(written(f"x = 1  {comment}\n")))
    reasoned = f"x = 1  {comment} - the table is a constant\n"
    assert list(rules.suppressions_without_reason(written(reasoned))) == []


def test_one_reason_serves_two_suppressions() -> None:
    line = "x = 1  # type: ignore[misc]  # noqa: S608 - the table is a constant\n"
    assert list(rules.suppressions_without_reason(written(line))) == []


def test_a_suppression_inside_a_string_is_none() -> None:
    assert list(rules.suppressions_without_reason(written('x = "# noqa"\n'))) == []


@pytest.mark.parametrize("word", ["TODO", "FIXME", "NotImplementedError", "Placeholder"])
def test_unfinished_work_is_found(word: str) -> None:
    assert list(rules.unfinished(written(f"x = 1  # {word}\n"))) == [f"domain/sample.py:1: {word}"]
    assert list(rules.unfinished(written("x = 1  # Done.\n"))) == []


@pytest.mark.parametrize("text", ["time.sleep(1)", "from time import sleep", "asyncio.sleep(1)"])
def test_a_sleep_is_found(text: str) -> None:
    assert list(rules.sleeps(written(f"{text}\n")))
    assert list(rules.sleeps(written("condition.wait(1)\n"))) == []


@pytest.mark.parametrize("text", ["os.environ['A']", "os.getenv('A')", "from os import environ"])
def test_a_read_of_the_environment_is_found(text: str) -> None:
    assert list(rules.environment_reads(written(f"{text}\n")))
    assert list(rules.environment_reads(written("settings.environ\n"))) == []


@pytest.mark.parametrize("text", ["import flask", "from app.http import api", "from . import x"])
def test_a_foreign_import_is_found(text: str) -> None:
    assert list(rules.foreign_imports(written(f"{text}\n"), rules.DOMAIN_MAY_IMPORT))
    home = written("import json\nfrom domain.money import MICROS\n")
    assert list(rules.foreign_imports(home, rules.DOMAIN_MAY_IMPORT)) == []


def test_an_import_of_nothing_is_found() -> None:
    text = "from tests.tidy.source import Sauce, Source\n"
    assert len([*rules.imports_of_nothing(written(text))]) == 1


@pytest.mark.parametrize("text", ["def f(a) -> int: ...", "def f(a: int): ...", "def f(*a): ..."])
def test_a_public_function_without_types_is_found(text: str) -> None:
    assert list(rules.unannotated(written(f"{text}\n")))
    private = text.replace("f(", "_f(")
    typed = "class A:\n    def f(self, a: int) -> None: ...\n"
    assert list(rules.unannotated(written(f"{private}\n{typed}"))) == []
