"""What one event says of another in the same commit: it is kept, or missing in the end.

In a commit the reason comes before its money, a plan change before its link, a link before its
eSIM: so each promise is made before it is kept.
"""

from collections.abc import Hashable


class Promises:
    """Facts that were announced, by what they are about, until the event comes that bears them."""

    def __init__(self) -> None:
        self._open: dict[Hashable, tuple[object, int, str]] = {}
        self._broken: list[tuple[int, str]] = []

    def make(self, position: int, key: Hashable, fact: object, missing: str) -> None:
        """Announce a fact; `missing` is what to say, with that position, if it never comes."""
        earlier = self._open.get(key)
        if earlier is not None:
            self._broken.append(earlier[1:])
        self._open[key] = (fact, position, missing)

    def keep(self, key: Hashable, fact: object) -> bool:
        """Tell whether exactly this was announced; it cannot be kept once more."""
        promised = self._open.pop(key, None)
        return promised is not None and promised[0] == fact

    def broken(self) -> list[tuple[int, str]]:
        """Return what was announced and never came, each with its position."""
        return [*self._broken, *(promised[1:] for promised in self._open.values())]
