"""One line of the table: what we reach, what the limit beside us reaches, and what we aim at."""

from dataclasses import dataclass
from math import nan


@dataclass(frozen=True)
class Aim:
    """A bound of the ratio and, for times that a person waits for, of our own figure."""

    ratio_min: float | None = None
    ratio_max: float | None = None
    ours_max: float | None = None

    def text(self, unit: str) -> str:
        parts = []
        if self.ratio_min is not None:
            parts.append(f"≥ {self.ratio_min:g}")
        if self.ratio_max is not None:
            parts.append(f"≤ {self.ratio_max:g}")
        if self.ours_max is not None:
            parts.append(f"≤ {self.ours_max:g} {unit}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Row:
    """`ours` and `limit` are in the same unit; a limit of None stands for no peer."""

    name: str
    ours: float
    limit: float | None
    unit: str
    aim: Aim

    @property
    def ratio(self) -> float:
        return self.ours / self.limit if self.limit else nan

    @property
    def met(self) -> bool:
        aim = self.aim
        return (
            (aim.ratio_min is None or self.ratio >= aim.ratio_min)
            and (aim.ratio_max is None or self.ratio <= aim.ratio_max)
            and (aim.ours_max is None or self.ours <= aim.ours_max)
        )
