"""Checks of parsed JSON that go on after a mistake, so that one run reports every mistake."""

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from json import JSONDecodeError
from typing import Any, TypeVar
from uuid import UUID

from domain import strict_json
from domain.errors import NotPossible
from domain.money import parse_amount

FILE = "the file"  # How errors name the file as a whole.
FILE_BYTES_MAX = 128 * 1024 * 1024  # Parsed it takes about ten times as much memory.
TEXT_CHARS_MAX = 255
NAME_CHARS_MAX = 60  # Of an unknown member's name; its beginning shows which one is meant.

T = TypeVar("T")
Path = tuple[str | int, ...]  # Member names and list indexes, from the outside in.
Problem = tuple[Path, str]  # Where the value is, and what it must be instead.
Check = Callable[[Any], T]  # Returns the checked value as its type; raises Wrong.


class Wrong(Exception):
    """Raised with everything that is wrong with a value."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    def inside(self, part: str | int) -> list[Problem]:
        """Return the problems with their paths extended by `part` in front."""
        return [((part, *path), message) for path, message in self.problems]


class FileRefused(NotPossible):
    """Raised when entries of a file cannot be imported; none was. One line for each reason."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = list(lines)


class TwiceNamed(dict[str, Any]):
    """A JSON object with repeated members, in which two readers would see different values."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs)
        self.names = sorted(name for name, count in counts.items() if count > 1)


def parse(data: bytes) -> Any:
    """Parse RFC 8259 JSON in UTF-8, a byte order mark in front allowed. Raises Wrong."""
    try:
        return strict_json.parse(data.removeprefix(BOM_UTF8), _object)
    except UnicodeDecodeError as error:
        raise Wrong(((), f"is not UTF-8: see byte {error.start}")) from None
    except JSONDecodeError as error:
        message = f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}"
        raise Wrong(((), message)) from None
    except ValueError:  # A constant, or more digits or depth than anybody needs.
        raise Wrong(((), "is not JSON that can be read")) from None


def _object(pairs: strict_json.Pairs) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else TwiceNamed(pairs)


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


def lines_of(place: str, problems: Iterable[Problem]) -> list[str]:
    """Return a line for each problem at a place."""
    return [": ".join(part for part in (place, shown(path), why) if part) for path, why in problems]


def read_file(data: bytes, check: Check[T]) -> T:
    """Parse a file and check what it holds; raises FileRefused with every reason."""
    if len(data) > FILE_BYTES_MAX:
        raise FileRefused([f"{FILE}: is larger than {FILE_BYTES_MAX} bytes"])
    try:
        return check(parse(data))
    except Wrong as wrong:
        raise FileRefused(lines_of(FILE, wrong.problems)) from None


def members(
    required: Mapping[str, Check[Any]], optional: Mapping[str, Check[Any]] = {}
) -> Check[dict[str, Any]]:
    """Check an object: all required members, no unknown ones. null counts as absent."""
    checks = {**required, **optional}

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Wrong(((), "must be an object"))
        problems: list[Problem] = []
        if not value.keys() <= checks.keys():
            problems += [((name,), "is unknown") for name in value if name not in checks]
        if isinstance(value, TwiceNamed):
            problems += [((name,), "stands here twice") for name in value.names]
        found: dict[str, Any] = {}
        for name, check_member in checks.items():
            member = value.get(name)
            if member is None and name in optional:
                found[name] = None
            elif name not in value:
                problems.append(((name,), "is missing"))
            else:
                try:
                    found[name] = check_member(member)
                except Wrong as wrong:
                    problems += wrong.inside(name)
        if problems:
            raise Wrong(*problems)
        return found

    return check


def every(check_item: Check[T]) -> Check[list[T]]:
    """Check a list whose items all have the same check."""

    def check(value: Any) -> list[T]:
        if not isinstance(value, list):
            raise Wrong(((), "must be a list"))
        problems: list[Problem] = []
        items: list[T] = []
        for index, item in enumerate(value):
            try:
                items.append(check_item(item))
            except Wrong as wrong:
                problems += wrong.inside(index)
        if problems:
            raise Wrong(*problems)
        return items

    return check


def some(check_list: Check[list[T]], noun: str) -> Check[list[T]]:
    """Check a list that must not be empty; the error names the missing `noun`."""

    def check(value: Any) -> list[T]:
        found = check_list(value)
        if not found:
            raise Wrong(((), f"must have at least one {noun}"))
        return found

    return check


def text(value: Any) -> str:
    """Check one line of text that people or programs will read."""
    fits = isinstance(value, str) and 1 <= len(value) <= TEXT_CHARS_MAX
    if not fits or not value.isprintable() or value != value.strip():
        message = f"must be text of 1 to {TEXT_CHARS_MAX} printable characters, no space around it"
        raise Wrong(((), message))
    return str(value)


def identifier(value: Any) -> UUID:
    """Check an id in its canonical spelling."""
    try:
        parsed = UUID(value)
    except (AttributeError, TypeError, ValueError):
        parsed = None
    if parsed is None or str(parsed) != value.lower():
        raise Wrong(((), "must be a UUID"))
    return parsed


def moment(value: Any) -> datetime:
    with suppress(TypeError, ValueError, OverflowError):
        found = datetime.fromisoformat(value)
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    raise Wrong(((), "must be a time with its offset, such as 2026-12-01T00:00:00Z"))


def flag(value: Any) -> bool:
    """Check a truth value."""
    if not isinstance(value, bool):
        raise Wrong(((), "must be true or false"))
    return value


def amount(value: Any) -> int:
    """Check an amount, which is a string; return micro-units."""
    try:
        return parse_amount(value)
    except (TypeError, ValueError):
        message = 'must be a string with at most six decimals, such as "4.50"'
        raise Wrong(((), message)) from None


def whole(highest: int) -> Check[int]:
    """Check a whole number from 1 to `highest`."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= highest:
            raise Wrong(((), f"must be a whole number from 1 to {highest}"))
        return value

    return check


def one_of(*choices: T) -> Check[T]:
    """Check that a value is one of these."""

    def check(value: Any) -> T:
        for choice in choices:
            if value == choice:
                return choice
        raise Wrong(((), f"must be one of: {', '.join(map(str, choices))}"))

    return check


def repeated(items: Iterable[tuple[Path, object]]) -> list[Problem]:
    """Find each item that equals an earlier one; items come with their paths."""
    first: dict[object, Path] = {}
    return [
        (path, f"is the same as {shown(first[item])}")
        for path, item in items
        if first.setdefault(item, path) != path
    ]
