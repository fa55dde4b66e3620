"""Replies in another form than JSON: CSV files, pages of HTML, pictures.

A cell that a spreadsheet would run as a formula is defused. What a page shows is escaped.
"""

import csv
import io
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from flask import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.http.edge.request import CURRENT
from domain.errors import NotAcceptable

JSON, CSV, HTML = "application/json", "text/csv", "text/html"
SVG, PNG = "image/svg+xml", "image/png"
NDJSON = "application/x-ndjson"  # A JSON text a line (https://github.com/ndjson/ndjson-spec).
ROWS_OF_A_BLOCK = 200
# A spreadsheet would run a cell with such a first character as a formula (OWASP, CSV injection).
FORMULA = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")  # The last four are full-width `=+-@`.

_QUALITY = re.compile(r'q\s*=\s*"?([0-9]+\.?[0-9]*|\.[0-9]+)')

# How templates are read, here and in the finance view: a name that is not there is an error.
JINJA: dict[str, Any] = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
PAGES = FileSystemLoader(Path(__file__).parents[1] / "templates")
TEMPLATES = Environment(loader=PAGES, autoescape=True, keep_trailing_newline=True, **JINJA)

HEADERS = {
    CSV: ("Content-Disposition", "With a table: the name of the file."),
    NDJSON: ("Content-Disposition", "The name of the file."),
    HTML: ("Content-Security-Policy", "With a page: that it loads nothing."),
    SVG: ("Vary", "That it depends on `Accept`."),
    PNG: ("Vary", "That it depends on `Accept`."),
}


def policy(style: str, more: str = "") -> str:
    """Return the Content-Security-Policy of a page that loads nothing, in which this style counts.

    `more` is what else it may show.
    """
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; {more}base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


def accepted(header: str) -> dict[str, float]:
    """Return the quality of each name in `Accept` or `Accept-Encoding` (RFC 9110 §12.4.2).

    They are in lower case and in their order. Clients write `q=.2`; a quality that is no number
    counts as 1. No other parameter counts, because no type here has any to choose by.
    """
    found: dict[str, float] = {}
    for each in header.lower().split(","):
        name, *parameters = (part.strip() for part in each.split(";"))
        read = next(filter(None, map(_QUALITY.match, parameters)), None)
        if name:
            found[name] = max(found.get(name, 0.0), min(float(read[1]) if read else 1.0, 1.0))
    return found


def preferred(*others: str, first: str = JSON) -> str:
    """Return which type of reply the client prefers: the `first`, unless it asks for another.

    Raises NotAcceptable if it takes none of them.
    """
    wanted = accepted(CURRENT.get().environ.get("HTTP_ACCEPT", ""))
    if not wanted:
        return first
    named = [*wanted]

    def rank(media: str) -> tuple[float, int, int]:
        """Return quality, closeness and order of the range that says most of a type."""
        ranges = media, f"{media.partition('/')[0]}/*", "*/*", "*"  # The JDK sends the last one.
        known = ((far, it) for far, it in enumerate(ranges) if it in wanted)
        return next(((wanted[it], -far, -named.index(it)) for far, it in known), (0.0, 0, 0))

    found = max(first, *others, key=rank)
    if not rank(found)[0]:
        raise NotAcceptable(first, *others)
    return found


def also_sent_as(examples: Mapping[str, str]) -> dict[str, Any]:
    """Return what the document says of further types of a 200, each by an example.

    They come behind the one that is there: generators take the first type that they know.
    """
    text, image = {"type": "string"}, {"type": "string", "format": "binary"}
    content = {
        media: {"schema": image if media in {SVG, PNG} else text, "example": example}
        for media, example in examples.items()
    }
    facts = [HEADERS[media] for media in examples]
    headers = {name: {"description": meaning, "schema": text} for name, meaning in facts}
    return {"content": content, "headers": headers}


def csv_reply(head: Sequence[str], rows: Iterable[Sequence[object]], file_name: str) -> Response:
    """Reply with CSV (RFC 4180), sent block by block while the rows are read.

    A table of any length holds a thread of the server, so its operation first calls
    `given.acquire` with a place of the container's `downloads`.
    """
    headers = attachment(file_name)
    return Response(csv_blocks(head, rows), headers=headers, content_type=f"{CSV}; charset=utf-8")


def attachment(file_name: str) -> dict[str, str]:
    """Return the headers of a file to be saved, whose type depends on `Accept`."""
    return {"Content-Disposition": f'attachment; filename="{file_name}"', "Vary": "Accept"}


def csv_blocks(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """Yield the table in blocks of some rows; a text that could be a formula is defused."""
    yield _lines([head])
    left = iter(rows)
    while block := [*islice(left, ROWS_OF_A_BLOCK)]:
        yield _lines(block)


def _lines(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([_cell(each) for each in row] for row in rows)
    return text.getvalue().encode()


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA) else text
