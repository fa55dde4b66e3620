"""What an event announces about a later event of the same commit, and whether that came.

Within a commit the reason comes before its money, a plan change before its link, and a link before
its eSIM. So every announcement comes first.
"""

from collections.abc import Hashable
from typing import NamedTuple


class _Promise(NamedTuple):
    fact: object
    position: int  # Of its announcement.
    missing: str


class Promises:
    """Announced facts, each under its subject, until the event that states them comes."""

    def __init__(self) -> None:
        self._open: dict[Hashable, _Promise] = {}
        self._broken: list[tuple[int, str]] = []

    def make(self, position: int, key: Hashable, fact: object, missing: str) -> None:
        """Announce a fact; `missing` is the failure to report if it never comes."""
        earlier = self._open.get(key)
        if earlier is not None:
            self._broken.append((earlier.position, earlier.missing))
        self._open[key] = _Promise(fact, position, missing)

    def keep(self, key: Hashable, fact: object) -> bool:
        """Tell whether exactly this fact was announced, and drop the announcement."""
        promised = self._open.pop(key, None)
        return promised is not None and promised.fact == fact

    def broken(self) -> list[tuple[int, str]]:
        """Return each announcement that was not kept, with its position."""
        open_now = ((each.position, each.missing) for each in self._open.values())
        return [*self._broken, *open_now]
