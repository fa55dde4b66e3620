"""The types of command-line arguments; each refuses wrong values by its own rule."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from app.books.reader import Selection
from domain.money import parse_amount

Decorator = Callable[[Callable[..., None]], Callable[..., None]]

WORDS_MAX = 255
POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)

_MONTH = re.compile(r"(?P<year>[12][0-9]{3})-(?P<month>0[1-9]|1[0-2])", re.ASCII)


class Amount(click.ParamType[int, str]):
    """Money as people write it, converted to micro-units."""

    name = "amount"

    def __init__(self, rule: str, accepts: Callable[[int], bool]) -> None:
        self._rule = rule
        self._accepts = accepts

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        digits = value.removeprefix("-")
        try:
            micros = parse_amount(digits) * (1 if digits == value else -1)
        except ValueError:
            what = "an amount such as 12.50: at most twelve digits, then at most six decimals"
            self.fail(f"{value!r} is not {what}", param, ctx)
        if not self._accepts(micros):
            self.fail(f"{value!r} is not {self._rule}", param, ctx)
        return micros


AT_LEAST_ZERO = Amount("an amount of at least 0", lambda micros: micros >= 0)
ABOVE_ZERO = Amount("an amount above 0", lambda micros: micros > 0)
NOT_ZERO = Amount("an amount other than 0", lambda micros: micros != 0)


class OrWord(click.ParamType[int | str, str]):
    """A number, or the one word that may stand in its place."""

    def __init__(self, number: click.ParamType[int, Any], word: str) -> None:
        self.name = f"{number.name}|{word}"
        self._number = number
        self._word = word

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        return value if value == self._word else self._number.convert(value, param, ctx)


class Month(click.ParamType[datetime, str]):
    """A calendar month (UTC) as YYYY-MM, converted to its first instant."""

    name = "YYYY-MM"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        match = _MONTH.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is not a month such as 2026-01", param, ctx)
        return datetime(int(match["year"]), int(match["month"]), 1, tzinfo=UTC)


class Moment(click.ParamType[datetime, str]):
    """A time with its offset; a date is its first instant in UTC."""

    name = "time"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        moment = moment_of(value)
        if moment is None:
            what = "a date, or a time such as 2026-01-31T08:00:00Z"
            self.fail(f"{value!r} is not {what}", param, ctx)
        return moment


def moment_of(text: str) -> datetime | None:
    """Read a time with its offset, or a date as its first instant in UTC; None if it is none."""
    try:
        moment = datetime.fromisoformat(text)
        if len(text) == len("2026-01-01"):
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


class Point(click.ParamType[datetime | int, str]):
    """A position of the log, or a time with its offset; a date is its first instant in UTC."""

    name = "time|position"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | int:
        if POSITION.fullmatch(value):
            return int(value)
        moment = moment_of(value)
        if moment is None:
            what = "a position, a date, or a time such as 2026-01-31T08:00:00Z"
            self.fail(f"{value!r} is not {what}", param, ctx)
        return moment


class Words(click.ParamType[str, str]):
    """One line of text that is kept for ever: a name, a reference or a reason."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        words = value.strip()
        if not words or len(words) > WORDS_MAX or not words.isprintable():
            self.fail(f"must be one line of 1 to {WORDS_MAX} printable characters", param, ctx)
        return words


organization_argument = click.argument("organization_id", metavar="ORG", type=click.UUID)

at_option = click.option("--at", type=Point(), help="After this position, or at this time.")


def month_option(text: str) -> Decorator:
    """Add --month."""
    return click.option("--month", type=Month(), help=text)


def out_option(text: str, *, may_be_directory: bool = False) -> Decorator:
    """Add --out, a file that is written."""
    kind = click.Path(path_type=Path, dir_okay=may_be_directory)
    return click.option("--out", type=kind, help=text)


# `-5.00` is an amount, not several options in one.
AMOUNTS_MAY_BE_NEGATIVE = {"ignore_unknown_options": True}


def selecting(command: Callable[..., None]) -> Callable[..., None]:
    """Add --from, --to and --org; the command gets them as one `selection`."""

    @click.option("--from", "since", type=Point(), help="From this position or time on.")
    @click.option("--to", "until", type=Point(), help="Up to this position, or before this time.")
    @click.option("--org", "organization_id", type=click.UUID, help="Of one organization.")
    @wraps(command)
    def run(
        *,
        since: datetime | int | None,
        until: datetime | int | None,
        organization_id: UUID | None,
        **others: Any,
    ) -> None:
        command(selection=Selection(organization_id, since, until), **others)

    return run
