"""A line that tells how far long work has come, for whoever watches a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from projections.engine.rebuild import Progress, ignore_progress

CLEAR = "\r\033[K"  # ECMA-48: to the start of the line, then erase it.


@contextmanager
def watched(what: str) -> Iterator[Progress]:
    """Lend what draws the line on standard error; it draws nothing when that is no terminal."""
    if not sys.stderr.isatty():
        yield ignore_progress
        return

    def draw(position: int, goal: int) -> None:
        click.echo(f"{CLEAR}{what}: {position:,} of {goal:,}", err=True, nl=False)

    try:
        yield draw
    finally:
        click.echo(CLEAR, err=True, nl=False)
