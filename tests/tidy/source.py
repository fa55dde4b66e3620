"""The Python files of the repository as the rules see them: path, text and syntax tree."""

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "domain", "projections", "workers")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One file; `path` is relative to the root of the repository, with forward slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def functions(self) -> list[tuple[str, Function]]:
        """Return every function with its dotted name (`Wallet.charge`, `register.run`)."""
        return [*_named_functions(self.tree)]

    @cached_property
    def comments(self) -> list[tuple[int, str]]:
        """Return line and text of each real comment; one inside a string is none."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]


def sources(*rooms: str) -> Iterator[Source]:
    """Read every Python file below these rooms, in order of their paths."""
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield Source(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))


def _named_functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue  # None can hold a function with a name.
        name = prefix
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            name = f"{prefix}.{child.name}".lstrip(".")
        if isinstance(child, FUNCTIONS):
            yield name, child
        yield from _named_functions(child, name)
