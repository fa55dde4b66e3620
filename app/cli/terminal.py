"""What a terminal would obey, reorder or hide is shown as an escape, wherever a command prints.

Names, reasons and topics come from files and from logs that somebody else may have written.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any


def printable(text: str) -> str:
    """Escape control characters, bidirectional marks and the like; line ends stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _escape(c) for c in text)


def one_line(text: str) -> str:
    """Escape line ends as well, so that nothing in a text looks like a line of ours."""
    return printable(text).replace("\n", "\\n")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


class Defused:
    """A text stream that prints only what is printable; `inner` takes everything."""

    def __init__(self, inner: IO[str]) -> None:
        self.inner = inner

    def write(self, text: str | bytes) -> int:
        """Print text, or the bytes of an export that goes to a terminal instead of a file."""
        if isinstance(text, bytes):
            text = text.decode("utf-8", "backslashreplace")
        self.inner.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str | bytes]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@contextmanager
def defused() -> Iterator[None]:
    """Let everything that is printed meanwhile be printable."""
    out, err = sys.stdout, sys.stderr
    if isinstance(out, Defused):
        yield
        return
    sys.stdout, sys.stderr = Defused(out), Defused(err)
    try:
        yield
    finally:
        if isinstance(sys.stdout, Defused):  # Else click has put in what survives a closed pipe.
            sys.stdout, sys.stderr = out, err
