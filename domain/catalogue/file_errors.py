"""What is wrong with a file of operators, entry by entry; such a file is refused as a whole."""

from collections.abc import Iterable, Sequence

from domain.errors import NotPossible

NAME_CHARS_MAX = 60  # Of an unknown member's name; its beginning shows which one is meant.

Path = tuple[str | int, ...]  # Member names and list indexes, from the outside in.
Problem = tuple[Path, str]  # Where the value is, and what it must be instead.


class Wrong(Exception):
    """Raised with everything that is wrong with an entry."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems


class FileRefused(NotPossible):
    """Raised when a file cannot be imported; nothing of it was. One line for each reason."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = list(lines)


def shown(path: Path) -> str:
    """Format a path as people write it, such as `coverage[2].country_code`."""
    written = ""
    for part in path:
        if isinstance(part, int):
            written += f"[{part}]"
        else:
            plain = part.isidentifier() and part.isascii() and len(part) <= NAME_CHARS_MAX
            name = part if plain else repr(part[:NAME_CHARS_MAX])
            written += f".{name}" if written else name
    return written


def lines_of(where: str, problems: Iterable[Problem]) -> list[str]:
    """Return a line for each problem at a place; that of a whole file is empty."""
    return [": ".join(part for part in (where, shown(path), why) if part) for path, why in problems]


def repeated(items: Iterable[tuple[Path, object]]) -> list[Problem]:
    """Find each item that equals an earlier one; items come with their paths."""
    first: dict[object, Path] = {}
    return [
        (path, f"is the same as {shown(first[item])}")
        for path, item in items
        if first.setdefault(item, path) != path
    ]
