"""What commands print: JSON for programs, facts and tables for people; and the progress line.

A command returns its answer: something with facts (a Shape, a dataclass or a mapping), a list of
such things, or `Said`, where people read something else than programs.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any, NamedTuple, cast
from uuid import UUID

import click
from msgspec import Struct, to_builtins

from app.cli.root import one_line
from projections.engine.rebuild import Progress, ignore_progress
from projections.engine.shape import Shape

Facts = Mapping[str, Any]

GAP = "  "


class Said(NamedTuple):
    """What programs get, and what people read: texts, facts, and lists as tables."""

    answer: Any
    people: Sequence[Any]


@dataclass(frozen=True)
class Named:
    """An operator: people read the name in place of the id, programs get it beside the id."""

    id: str | None
    name: str | None


def facts_of(thing: object, *, as_json: bool = True) -> dict[str, Any]:
    """Return what is told of a thing, by name."""
    match thing:
        case Mapping():
            facts: Facts = thing
        case Shape():
            facts = thing.facts()
        case Struct():
            facts = to_builtins(thing)
        case _:
            facts = asdict(cast("Any", thing))
    shown: dict[str, Any] = {}
    for name, value in facts.items():
        if not isinstance(value, Named):
            shown[name] = value
        elif as_json:
            shown |= {name: value.id, f"{name}_name": value.name}
        else:
            shown[name] = value.name
    return shown


def show(answer: Any, *, as_json: bool) -> None:
    """Print an answer as one JSON object, lists as `{"data": […]}`; or for people."""
    said = answer if isinstance(answer, Said) else Said(answer, [answer])
    if as_json:
        is_list = isinstance(said.answer, list)
        facts = {"data": [*map(facts_of, said.answer)]} if is_list else facts_of(said.answer)
        click.echo(in_json(facts))
    else:
        for block in said.people:
            _show_block(block)


def in_json(facts: Facts) -> str:
    return json.dumps(facts, default=_plain)


def in_parts(facts: Facts, parts: Mapping[str, list[Any]]) -> Said:
    """Let people see how long each list is, and then those that are not empty, as tables."""
    lengths = {name: len(rows) for name, rows in parts.items()}
    tables = [[f"\n{name}:", rows] for name, rows in parts.items() if rows]
    return Said({**facts, **parts}, [{**facts, **lengths}, *chain.from_iterable(tables)])


def show_stream(rows: Iterable[object], line: Callable[[Facts], str], *, as_json: bool) -> None:
    """Print any number of things as they come: as `{"data": […]}`, or as a line for each."""
    shown = (facts_of(row, as_json=as_json) for row in rows)
    if not as_json:
        for row in shown:
            click.echo(one_line(line(row)))
        return
    lead = '{"data": ['
    for row in shown:
        click.echo(lead + in_json(row), nl=False)
        lead = ", "
    click.echo("]}" if lead == ", " else lead + "]}")


def _show_block(block: Any) -> None:
    if isinstance(block, str):
        click.echo(block)
        return
    if isinstance(block, list):
        _show_table(block)
        return
    facts = facts_of(block, as_json=False)
    width = max(map(len, facts))
    for name, value in facts.items():
        click.echo(f"{name:<{width}}{GAP}{_cell(value)}")


def _show_table(things: Sequence[object]) -> None:
    rows = [facts_of(each, as_json=False) for each in things]
    if not rows:
        click.echo("There are none.")
        return
    names = dict.fromkeys(chain.from_iterable(rows))  # What is UNSET in one may be told of others.
    table = [[name.upper() for name in names]]
    table += [[_cell(row.get(name)) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = [f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)]
        click.echo(GAP.join(cells).rstrip())


def _cell(value: object) -> str:
    match value:
        case None | "" | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case Mapping() | Shape():
            return " ".join(map(_cell, facts_of(value).values()))
        case list():
            return ", ".join(map(_cell, value))
        case UUID() | datetime():
            return str(_plain(value))
        case _:
            return one_line(str(value))


def _plain(value: object) -> object:
    """Return the contract's form of a value for which JSON has none."""
    match value:
        case datetime():
            utc = value.astimezone(UTC).replace(tzinfo=None)
            return utc.isoformat(timespec="milliseconds") + "Z"
        case UUID() | Path():
            return str(value)
        case _ if isinstance(value, Struct) or is_dataclass(value):
            return facts_of(value)
        case _:
            raise TypeError(type(value).__name__)


class Refusals(click.ClickException):
    """Ends a command with one line for each mistake."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = [one_line(each) for each in lines]
        super().__init__("\n".join(self._lines))

    def show(self, file: IO[Any] | None = None) -> None:
        for line in self._lines:
            click.echo(f"Error: {line}", file=file, err=True)


def warn(line: str) -> None:
    """Tell of what stops nothing."""
    click.echo(f"Warning: {line}", err=True)


CLEAR = "\r\033[K"  # ECMA-48: to the start of the line, then erase it.


@contextmanager
def watched(what: str) -> Iterator[Progress]:
    """Lend a function that draws a progress line on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield ignore_progress
        return

    def draw(position: int, goal: int) -> None:
        click.echo(f"{CLEAR}{what}: {position:,} of {goal:,}", file=terminal, nl=False)

    terminal = getattr(sys.stderr, "inner", sys.stderr)  # It must obey.
    try:
        yield draw
    finally:
        click.echo(CLEAR, file=terminal, nl=False)


@contextmanager
def written(out: Path | None) -> Iterator[IO[bytes]]:
    """Lend the standard output, or a file that is there only once it is whole (mode 0600)."""
    if out is None:
        yield cast("IO[bytes]", sys.stdout) if sys.stdout.isatty() else sys.stdout.buffer
        return
    if out.exists() and not out.is_file():  # A device or a FIFO takes the bytes as they come.
        with out.open("wb") as file:
            yield file
        return
    out = out.resolve()  # A symbolic link stays one.
    draft = f".{out.name}.unfinished-"  # Each has its own: two may write at once.
    with NamedTemporaryFile(dir=out.parent, prefix=draft, delete=False) as file:
        try:
            yield file
            file.flush()
            Path(file.name).replace(out)
        finally:
            Path(file.name).unlink(missing_ok=True)
