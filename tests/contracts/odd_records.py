"""Makes odd records out of a good one: the same reply with one or two values that make no sense."""

import copy
import random
from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = (
    None,
    "",
    "n/a",
    "null",
    "NaN",
    "-1",
    "1.5",
    "9" * 40,
    "x" * 100_000,
    "9999-12-31T23:59:59+00:00",
    -1,
    -(10**18),
    0,
    1.5,
    1e300,
    10**400,
    True,
    False,
    [],
    {},
    [None],
    [{}],
    {"a": {"b": [1]}},
    ["x"] * 1_000,
)
DEEP = 200  # Levels of the nested values.


def odd_record(good: Any, number: int) -> Any:
    """Return an odd form of a reply, for each number another one; its outermost form stays."""
    chance = random.Random(number)  # It only chooses what a test sends.
    values = [*ODD, _nested()]
    if not isinstance(good, dict | list):
        return good
    odd = copy.deepcopy(good)
    for _ in range(1 + number % 2):
        _spoil(odd, copy.deepcopy(values[number % len(values)]), chance)
    return odd


def _nested() -> Any:
    value: Any = "deep"
    for level in range(DEEP):
        value = [value] if level % 2 else {"in": value}
    return value


def _spoil(told: Any, value: Any, chance: random.Random) -> None:
    """Replace, remove or add one value somewhere in a reply."""
    places = [*_places(told)]
    if not places:
        return
    holder, name = chance.choice(places)
    match chance.randrange(6):
        case 0 if isinstance(holder, dict):
            del holder[name]
        case 1 if isinstance(holder, dict):
            holder[f"{name}_new"] = value
        case 2:
            holder[name] = [holder[name]]
        case _:
            holder[name] = value


def _places(told: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a reply: an object or a list, and the name or index in it."""
    names = told.keys() if isinstance(told, dict) else range(len(told))
    for name in [*names]:
        yield told, name
        if isinstance(told[name], dict | list):
            yield from _places(told[name])
