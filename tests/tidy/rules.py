"""The house rules that no linter knows, each a function from a file to its findings."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain

from tests.tidy.source import ROOT, Source

FUNCTION_LINES_MAX = 40
REASON_WORDS_MIN = 2
DOMAIN_MAY_IMPORT = {*sys.stdlib_module_names, "domain", "eventsourcing", "msgspec"}

_CODES = r"[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*"
_SUPPRESSION = re.compile(
    rf"noqa(?::\s*{_CODES})?|type:\s*ignore(?:\[[^]]*])?|(?:mypy|fmt|pragma):\s*\S+", re.ASCII
)
_UNFINISHED = re.compile(r"\b(TODO|FIXME|NotImplementedError|(?i:placeholder))")


def oversized(source: Source) -> dict[str, int]:
    """Return the lines of each function over the limit, by path and name.

    The length of a file is no rule: a concept is a file. Aim at 150 lines, look twice above 400.
    """
    found: dict[str, int] = {}
    for name, function in source.functions:
        assert function.end_lineno is not None, name
        lines = function.end_lineno - function.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            found[f"{source.path}::{name}"] = lines
    return found


def suppressions_without_reason(source: Source) -> Iterator[str]:
    found = filter(None, map(_SUPPRESSION.search, source.text.splitlines()))
    if all(_has_reason(each.string[each.start() :]) for each in found):
        return  # To look for comments takes longer than to look at the text.
    for line, comment in source.comments:
        if _SUPPRESSION.search(comment) and not _has_reason(comment):
            yield f"{source.path}:{line}: {comment}"


def _has_reason(comment: str) -> bool:
    reason = _SUPPRESSION.sub("", comment)
    return len(re.findall(r"[A-Za-z]{2,}", reason)) >= REASON_WORDS_MIN


def unfinished(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), start=1):
        if match := _UNFINISHED.search(line):
            yield f"{source.path}:{number}: {match[0]}"


def sleeps(source: Source) -> Iterator[str]:
    return _uses(source, {"time.sleep", "asyncio.sleep"})


def environment_reads(source: Source) -> Iterator[str]:
    return _uses(source, {"os.environ", "os.environb", "os.getenv", "os.getenvb"})


def foreign_imports(source: Source, allowed: Iterable[str]) -> Iterator[str]:
    for line, name in _imports(source):
        if name.partition(".")[0] not in allowed:
            yield f"{source.path}:{line}: imports {name}"


def imports_of_nothing(source: Source) -> Iterator[str]:
    """Find names that a module of tests, which no other tool reads, does not have (any more)."""
    for line, name in _imports(source):
        path, _, part = name.replace(".", "/").rpartition("/")
        file = ROOT / f"{path}.py"
        if path.startswith("tests/") and file.exists() and part not in file.read_text():
            yield f"{source.path}:{line}: imports {name}"


def _imports(source: Source) -> Iterator[tuple[int, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def _uses(source: Source, names: set[str]) -> Iterator[str]:
    """Find these dotted names, whether written out or imported by their last part."""
    last = {name.rpartition(".")[2] for name in names}
    if not any(each in source.text for each in last):
        return  # To walk over the tree takes longer than to look at the text.
    written = (
        (node.lineno, ast.unparse(node))
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in last
    )
    for line, name in chain(written, _imports(source)):
        if name in names:
            yield f"{source.path}:{line}: {name}"
