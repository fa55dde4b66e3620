"""What commands print: JSON for programs, short lines and tables for people.

Also the progress line of long work on a terminal.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast
from uuid import UUID

import click

from app.cli.terminal import one_line
from projections.engine.rebuild import Progress, ignore_progress

GAP = "  "

as_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)


def show(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print one thing: as a JSON object, or as a line for each fact."""
    if as_json:
        click.echo(json.dumps(facts, default=_text))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        click.echo(f"{name:<{width}}{GAP}{_cell(value)}")


def named(
    facts: Mapping[str, Any], key: str, names: Mapping[str, str], *, as_json: bool
) -> dict[str, Any]:
    """Return facts with the name of an operator: in place of the id, in JSON beside it."""
    name = names.get(facts[key], facts[key])
    named = {key: facts[key], f"{key}_name": name} if as_json else {key: name}
    told: dict[str, Any] = {}
    for each, value in facts.items():
        told |= named if each == key else {each: value}
    return told


def show_list(rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print several things: as `{"data": […]}`, or as a table whose head has the facts' names."""
    if as_json:
        click.echo(json.dumps({"data": rows}, default=_text))
        return
    if not rows:
        click.echo("There are none.")
        return
    table = [[name.upper() for name in rows[0]]]
    table += [[_cell(value) for value in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = [f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)]
        click.echo(GAP.join(cells).rstrip())


def show_parts(
    facts: Mapping[str, Any], parts: Mapping[str, Sequence[Mapping[str, Any]]], *, as_json: bool
) -> None:
    """Print one thing with lists of its parts; the lists that are not empty follow as tables."""
    if as_json:
        show({**facts, **parts}, as_json=True)
        return
    show({**facts, **{name: len(rows) for name, rows in parts.items()}}, as_json=False)
    for name, rows in parts.items():
        if rows:
            click.echo(f"\n{name}:")
            show_list(rows, as_json=False)


def show_stream(
    rows: Iterable[Mapping[str, Any]], line: Callable[[Mapping[str, Any]], str], *, as_json: bool
) -> None:
    """Print any number of things as they come: as `{"data": […]}`, or as a line for each."""
    if not as_json:
        for row in rows:
            click.echo(one_line(line(row)))
        return
    lead = '{"data": ['
    for row in rows:
        click.echo(lead + json.dumps(row, default=_text), nl=False)
        lead = ", "
    click.echo("]}" if lead == ", " else lead + "]}")


def _cell(value: object) -> str:
    match value:
        case None | "" | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return " ".join(map(_cell, value.values()))
        case list():
            return ", ".join(map(_cell, value))
        case UUID() | datetime():
            return _text(value)
        case _:
            return one_line(str(value))


def _text(value: object) -> str:
    """Return the contract's form of a value for which JSON has none."""
    match value:
        case datetime():
            utc = value.astimezone(UTC).replace(tzinfo=None)
            return utc.isoformat(timespec="milliseconds") + "Z"
        case UUID():
            return str(value)
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
    draft = out.with_name(f".{out.name}.unfinished")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            yield file
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)
