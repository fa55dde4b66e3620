"""A file of amounts from outside: a provider's invoice or a bank's statement.

CSV in UTF-8, with a byte order mark or without, or in UTF-16 with one, unless the caller names the
encoding. Lines may come before the head, which is the first line that has the wanted columns. The
separator (semicolon, comma or tab) is the first one that yields such a line. `1.234,56`,
`1,234.56`, `1'234.56` and `12.50-` are amounts; the file as a whole decides whether its decimals
follow a point or a comma.
"""

import codecs
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from domain.money import AMOUNT_MICROS_MAX, MICROS

FILE_BYTES_MAX = 32 * 1024 * 1024
TOLD_MAX = 20  # Errors in one report; if there are more, they probably have one cause.
SEPARATORS = (";", ",", "\t")

Mark = Literal[".", ","]
Row = tuple[int, list[str]]  # The number of the line, from 1, and its values.


class WrongFile(Exception):
    """Raised with a line for each reason why a file cannot be read."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True)
class Layout:
    """Where the values are; without a column for it, all amounts are in `currency`.

    Names of columns are compared without case, spaces and underscores. `only` is a column and its
    value: lines with another value are left out.
    """

    reference: str
    amount: str
    currency_column: str | None
    currency: str
    decimal: Mark | None = None  # None: the amounts of the file show it.
    encoding: str | None = None
    only: tuple[str, str] | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that the head must have, in the order of the fields above."""
        named = [self.reference, self.amount, self.currency_column, (self.only or (None,))[0]]
        return [each for each in named if each is not None]


@dataclass(frozen=True, slots=True)
class Theirs:
    """One line of the file, or the sum of several lines of one reference."""

    line: int
    reference: str
    amount_micros: int
    currency: str


def read_amounts(data: bytes, layout: Layout) -> list[Theirs]:
    """Read every line that has a reference or an amount; raises WrongFile with all reasons."""
    if len(data) > FILE_BYTES_MAX:
        message = f"the file is larger than {FILE_BYTES_MAX} bytes"
        raise WrongFile(message)
    rows, places = _body(_text(data, layout.encoding), layout)
    found: list[tuple[int, list[str]]] = []
    for line, row in rows:
        values = [row[place].strip() if place < len(row) else "" for place in places]
        if layout.only is not None and values.pop() != layout.only[1]:
            continue
        if values[0] or values[1]:
            found.append((line, values))
    amounts = _amounts([(line, values[1]) for line, values in found], layout)
    return [
        Theirs(line, values[0], amount, values[2].upper() if values[2:] else layout.currency)
        for (line, values), amount in zip(found, amounts, strict=True)
    ]


def _text(data: bytes, encoding: str | None) -> str:
    if encoding is None:
        wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if wide else "utf-8-sig"
    try:
        return data.decode(encoding)
    except LookupError:
        message = f"there is no encoding {encoding}"
    except UnicodeDecodeError as error:
        message = f"is not {error.encoding}: see byte {error.start}; --encoding names another one"
    raise WrongFile(message)


def _body(text: str, layout: Layout) -> tuple[list[Row], list[int]]:
    """Return the rows below the head, and the index of each wanted column."""
    wanted = [_plain(each) for each in layout.columns]
    for separator in SEPARATORS:
        rows = _rows(text, separator)
        for index, (_, row) in enumerate(rows):
            head = [_plain(cell) for cell in row]
            if set(wanted) <= set(head):
                _check_width(rows[index + 1 :], len(head))
                return rows[index + 1 :], [head.index(each) for each in wanted]
    message = f"no line has the columns {', '.join(map(repr, layout.columns))}"
    raise WrongFile(message)


def _plain(name: str) -> str:
    """Normalize the name of a column: `start_date`, `StartDate` and `Start date` are equal."""
    return re.sub(r"[\s_]", "", name.casefold())


def _rows(text: str, separator: str) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        message = f"line {reader.line_num}: {error}"
        raise WrongFile(message) from None


def _check_width(rows: Sequence[Row], width: int) -> None:
    """Refuse lines with more values than columns: a decimal comma may have split a value."""
    lines = [
        f"line {line}: has {len(row)} values, the head has {width} columns"
        for line, row in rows
        if any(row[width:])
    ]
    if lines:
        raise WrongFile(*lines[:TOLD_MAX])


def _pattern(mark: Mark) -> re.Pattern[str]:
    group = "," if mark == "." else "."
    return re.compile(
        rf"(?P<sign>[-+−]?)(?P<whole>[1-9][0-9]{{0,2}}(?:['’ {group}][0-9]{{3}})+|[0-9]{{1,12}})"
        rf"(?:{re.escape(mark)}(?P<fraction>[0-9]{{1,6}})0*)?(?P<end>-?)"
    )


PATTERNS: dict[Mark, re.Pattern[str]] = {".": _pattern("."), ",": _pattern(",")}


def _micros(text: str, mark: Mark) -> int | None:
    """Read one amount; None if it is none. No-break spaces count as spaces."""
    match = PATTERNS[mark].fullmatch(text.replace("\u00a0", " ").replace("\u202f", " "))
    if match is None or (match["sign"] and match["end"]):
        return None
    whole = int(re.sub(r"[^0-9]", "", match["whole"]))
    micros = whole * MICROS + int((match["fraction"] or "").ljust(6, "0"))
    negative = match["sign"] in {"-", "−"} or bool(match["end"])
    return None if micros > AMOUNT_MICROS_MAX else -micros if negative else micros


def _amounts(cells: Sequence[tuple[int, str]], layout: Layout) -> list[int]:
    marks: list[Mark] = [".", ","] if layout.decimal is None else [layout.decimal]
    readings = [[_micros(text, mark) for _, text in cells] for mark in marks]
    best, *other = sorted(readings, key=lambda reading: reading.count(None))
    wrong = [(cell, "is no amount") for cell, one in zip(cells, best, strict=True) if one is None]
    if not wrong and other and None not in other[0]:
        pairs = zip(cells, best, other[0], strict=True)
        why = "can be read in two ways; --decimal says which"
        wrong = [(cell, why) for cell, one, another in pairs if one != another]
    if wrong:
        place = f"column {layout.amount}"
        told = [f"line {line}, {place}: {text[:40]!r} {why}" for (line, text), why in wrong]
        raise WrongFile(*told[:TOLD_MAX])
    return [micros for micros in best if micros is not None]
