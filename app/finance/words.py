"""How figures are written: money, times, kinds, events."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime

from app.http.finance.page import KIND_NAMES
from domain.money import MICROS

DECIMALS = range(2, 7)
MINUS = "\N{MINUS SIGN}"
LARGE = ((10**9, "bn"), (10**6, "m"), (10**3, "k"))


def decimals_of(amounts: Iterable[int]) -> int:
    """Return how many decimals show all these amounts exactly, at least two.

    A column uses the same number in every row, so that the decimal points are aligned.
    """
    whole = [abs(each) for each in amounts]
    return next(
        n for n in DECIMALS if n == DECIMALS[-1] or not any(w % 10 ** (6 - n) for w in whole)
    )


def decimals_in(rows: Sequence[object], *columns: str) -> int:
    return decimals_of(getattr(row, column) for row in rows for column in columns)


def money(micros: int, decimals: int | None = None, *, sign: bool = False) -> str:
    """Write an exact amount with separators between thousands; `sign` also writes a plus."""
    digits = decimals_of([micros]) if decimals is None else decimals
    whole, rest = divmod(abs(micros), MICROS)
    before = MINUS if micros < 0 else "+" if sign and micros else ""
    return f"{before}{whole:,}.{f'{rest:06d}'[:digits]}"


def whole(number: int) -> str:
    return f"{number:,}"


def short_money(micros: int) -> str:
    """Write a round amount for an axis."""
    before, units = MINUS if micros < 0 else "", abs(micros) / MICROS
    for size, name in LARGE:
        if units >= size:
            return f"{before}{units / size:g} {name}"
    return f"{before}{units:g}"


def kind(name: str) -> str:
    return KIND_NAMES.get(name, name.replace("_", " ").capitalize())


def topic(name: str) -> str:
    """Write the topic of an event as words: `link.plan_added` is "Link: plan added"."""
    thing, _, fact = name.replace("_", " ").partition(".")
    return f"{thing.capitalize()}: {fact}".replace("esim", "eSIM").replace("Esim", "eSIM")


def day(value: date) -> str:
    return f"{value.day} {value:%b %Y}"


def moment(value: datetime | None) -> str:
    return "" if value is None else f"{value:%Y-%m-%d %H:%M:%S}"
