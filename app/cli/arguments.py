"""The types of command-line arguments; each refuses wrong values by its own rule."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click

from domain.money import CURRENCIES, parse_amount

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

WORDS_MAX = 255

_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)
_MONTH = re.compile(r"[12][0-9]{3}-(?:0[1-9]|1[0-2])", re.ASCII)


class Text(click.ParamType[Any, str]):
    """What `read` makes of a text; `wrong` is said, with the text, where it raises ValueError."""

    def __init__(self, name: str, read: Callable[[str], Any], wrong: str) -> None:
        self.name, self._read, self._wrong = name, read, wrong

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._read(value)
        except (ValueError, OverflowError):
            self.fail(self._wrong.format(value), param, ctx)


class Amount(Text):
    """Money as people write it, converted to micro-units."""

    def __init__(self, rule: str, accepts: Callable[[int], bool]) -> None:
        form = "an amount such as 12.50: at most twelve digits, then at most six decimals"
        super().__init__("amount", _read_amount, f"{{!r}} is not {form}")
        self._rule, self._accepts = rule, accepts

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        micros: int = super().convert(value, param, ctx)
        if not self._accepts(micros):
            self.fail(f"{value!r} is not {self._rule}", param, ctx)
        return micros


class OrWord(click.ParamType[int | str, str]):
    """A number, or the one word that may stand in its place."""

    def __init__(self, number: click.ParamType[int, Any], word: str) -> None:
        self.name = f"{number.name}|{word}"
        self._number, self._word = number, word

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        return value if value == self._word else self._number.convert(value, param, ctx)


def matched(pattern: re.Pattern[str], value: str) -> re.Match[str]:
    """Match all of a text; raises ValueError if it does not."""
    if (match := pattern.fullmatch(value)) is None:
        raise ValueError
    return match


def _read_amount(value: str) -> int:
    digits = value.removeprefix("-")
    return parse_amount(digits) * (1 if digits == value else -1)


def read_moment(value: str) -> datetime:
    """Read a time with its offset; raises ValueError or OverflowError."""
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError
    return moment.astimezone(UTC)


def _read_moment(value: str) -> datetime:
    return read_moment(f"{value}T00:00Z" if len(value) == len("2026-01-01") else value)


def _read_words(value: str) -> str:
    words = value.strip()
    if not words or len(words) > WORDS_MAX or not words.isprintable():
        raise ValueError
    return words


def _read_date(value: str) -> date:
    day = date.fromisoformat(value)
    if day.isoformat() != value:
        raise ValueError
    return day


AT_LEAST_ZERO = Amount("an amount of at least 0", lambda micros: micros >= 0)
ABOVE_ZERO = Amount("an amount above 0", lambda micros: micros > 0)
NOT_ZERO = Amount("an amount other than 0", lambda micros: micros != 0)
# A calendar month (UTC).
MONTH = Text(
    "YYYY-MM", lambda value: matched(_MONTH, value)[0], "{!r} is not a month such as 2026-01"
)
DATE = Text("YYYY-MM-DD", _read_date, "{!r} is not a date such as 2026-01-31")
# A time with its offset; a date is its first instant in UTC.
MOMENT = Text("time", _read_moment, "{!r} is not a date, or a time such as 2026-01-31T08:00:00Z")
# A position of the log, or a moment.
POINT = Text(
    "time|position",
    lambda value: int(value) if _POSITION.fullmatch(value) else _read_moment(value),
    "{!r} is not a position, a date, or a time such as 2026-01-31T08:00:00Z",
)
CURRENCY = Text(
    "code",
    lambda value: matched(re.compile("|".join(CURRENCIES)), value.upper())[0],
    "{!r} is not a currency code of ISO 4217, such as EUR",
)
# One line of text that is kept for ever: a name, a reference or a reason.
WORDS = Text("text", _read_words, f"must be one line of 1 to {WORDS_MAX} printable characters")


def id_argument(name: str, metavar: str = "ID", **options: Any) -> Decorator:
    """Add an argument that is a UUID."""
    return click.argument(name, metavar=metavar, type=click.UUID, **options)


organization_argument = id_argument("organization_id", "ORG")

at_option = click.option("--at", type=POINT, help="After this position, or at this time.")


def org_option(text: str, metavar: str | None = "ID") -> Decorator:
    return click.option("--org", "organization_id", metavar=metavar, type=click.UUID, help=text)


def month_option(text: str) -> Decorator:
    return click.option("--month", type=MONTH, help=text)


def out_option(text: str) -> Decorator:
    return click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help=text)


# `-5.00` is an amount, not several options in one.
AMOUNTS_MAY_BE_NEGATIVE = {"ignore_unknown_options": True}


def selecting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --from, --to and --org: the fields of a Selection."""
    command = org_option("Of one organization.", metavar=None)(command)
    until = click.option("--to", "until", type=POINT, help="Up to this position, or before a time.")
    return click.option("--from", "since", type=POINT, help="From this position or time on.")(
        until(command)
    )
