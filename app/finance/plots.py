"""Computes where the marks of a plot are; the templates draw them as SVG.

Places are percentages of the plot, so that a drawing fits every screen while its texts keep their
size. Values are whole numbers, such as micro-units.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

STEPS_MAX = 5  # Lines of a scale; more would be noise.
DATES_MAX = 6  # Labels below a plot: so many fit on a telephone.
GAP = 0.24  # The share of a day's width that is left between two bars.

Mark = tuple[float, str]  # A labelled place on an axis, in per cent.
Label = Callable[[int], str]
Words = Callable[[int], str]  # The text about the day with this number.


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle, in per cent; `name` is the series of a bar, or the text about a day."""

    name: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Plot:
    """Everything that is drawn; `line` and `area` are paths on a square of 100 by 100."""

    scale: Sequence[Mark]
    dates: Sequence[Mark]
    days: Sequence[Area]
    zero: float
    bars: Sequence[Area] = field(default=())
    line: str = ""
    area: str = ""


class Scale:
    """A scale that covers zero and all values, and begins and ends at round numbers."""

    def __init__(self, values: Sequence[int]) -> None:
        low, high = min([*values, 0]), max([*values, 0])
        self.step = step_of(high - low)
        self.low = self.step * (low // self.step)
        self.high = max(-self.step * (-high // self.step), self.low + self.step)

    def at(self, value: int) -> float:
        return round(100 * (self.high - value) / (self.high - self.low), 3)

    def marks(self, label: Label) -> list[Mark]:
        values = range(self.low, self.high + 1, self.step) if self.step > 1 else [0]  # Of nothing.
        return [(self.at(value), label(value)) for value in values]


def step_of(span: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50 … of which `STEPS_MAX` cover the span."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if span <= step * STEPS_MAX:
                return step
        power *= 10


def line(days: Sequence[date], values: Sequence[int], label: Label, words: Words) -> Plot:
    """Draw a value for each day as a line over a filled area."""
    scale, count = Scale(values), len(days)
    points = [f"{_percent(n + 0.5, count)},{scale.at(each)}" for n, each in enumerate(values)]
    path = f"M0,{scale.at(values[0])} L{' '.join(points)} 100,{scale.at(values[-1])}"
    zero = scale.at(0)
    area = f"{path} L100,{zero} 0,{zero} Z"
    return Plot(scale.marks(label), dates(days), _days(count, words), zero, (), path, area)


def bars(
    days: Sequence[date], values: Sequence[Mapping[str, int]], label: Label, words: Words
) -> Plot:
    """Stack the values of each day: positive ones above zero, negative ones below it."""
    ups = [sum(each for each in day.values() if each > 0) for day in values]
    downs = [sum(each for each in day.values() if each < 0) for day in values]
    scale, count = Scale([*ups, *downs]), len(days)
    drawn: list[Area] = []
    for number, day in enumerate(values):
        x, width = _percent(number + GAP / 2, count), _percent(1 - GAP, count)
        up = down = 0
        for name, value in day.items():
            start = up if value > 0 else down
            top, bottom = scale.at(max(start, start + value)), scale.at(min(start, start + value))
            if value:
                drawn.append(Area(name, x, top, width, round(bottom - top, 3)))
            up, down = (up + value, down) if value > 0 else (up, down + value)
    return Plot(scale.marks(label), dates(days), _days(count, words), scale.at(0), drawn)


def dates(days: Sequence[date]) -> list[Mark]:
    """Label a few days at even distances, or the first days of months."""
    count = len(days)
    for step in (1, 2, 7, 14):
        if count <= step * DATES_MAX:
            shown = range((count - 1) % step, count, step)
            return [(_percent(n + 0.5, count), f"{days[n].day} {days[n]:%b}") for n in shown]
    firsts = [number for number, day in enumerate(days) if day.day == 1]
    step = -(-len(firsts) // DATES_MAX)
    return [
        (_percent(n + 0.5, count), f"{days[n]:%b %Y}" if days[n].month == 1 else f"{days[n]:%b}")
        for n in firsts[::step]
    ]


def _days(count: int, words: Words) -> list[Area]:
    width = _percent(1, count)
    return [Area(words(n), _percent(n, count), 0, width, 100) for n in range(count)]


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 3)
