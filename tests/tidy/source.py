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


@dataclass(frozen=True)
class Source:
    """One file; `path` is relative to the root of the repository, with forward slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

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


def named_functions(
    node: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Walk every function with its dotted name (`Wallet.charge`, `register.run`)."""
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            name = f"{prefix}.{child.name}".lstrip(".")
        if isinstance(child, FUNCTIONS):
            yield name, child
        yield from named_functions(child, name)
