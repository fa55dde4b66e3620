"""Strict JSON: bytes that two parsers could read as different values are refused."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

Pairs = list[tuple[str, Any]]


def members_once(pairs: Pairs) -> dict[str, Any]:
    """Return an object. Raises ValueError if a name comes twice, or UTF-8 cannot write it."""
    members = dict(pairs)
    if len(members) != len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{name!r} stands twice in one object")
    "".join(members).encode()  # A lone surrogate cannot be repeated in a reply.
    return members


def parse(data: bytes, members: Callable[[Pairs], dict[str, Any]] = members_once) -> Any:
    """Parse RFC 8259 JSON in UTF-8; `members` makes an object of its pairs.

    Raises ValueError for anything else, such as NaN, infinities or too deep nesting.
    """
    try:
        return json.loads(data.decode(), object_pairs_hook=members, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is too deep") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
