"""Writes the table of docs/partners/errors.md from the code: `python -m tests.docs.errors_page`.

What a row says stands in the refusal (`domain/errors.py`), or in the problem of HTTP itself.
"""

import sys
from collections.abc import Iterator

from app.http.edge import problems
from app.http.edge.replies import error_detail
from domain.errors import REFUSALS, Refused
from tests.tidy.source import ROOT

PAGE = ROOT / "docs" / "partners" / "errors.md"
# What stands before the first and behind the second of these is written by hand.
BEGIN = "| Status | Code | Again | Cause | What to do |\n|---|---|---|---|---|\n"
END = "\nThe token operation has its own codes"
AGAIN = {True: "yes", False: "no", None: "it says"}

Row = Refused | type[Refused]


def rows() -> Iterator[Row]:
    """Yield each code once, by status."""
    of_http = [each for each in vars(problems).values() if isinstance(each, Refused)]
    first = dict[str, Row]()
    for each in (*of_http, *REFUSALS.values()):
        first.setdefault(each.code, REFUSALS.get(each.code, each))
    return iter(sorted(first.values(), key=lambda each: each.status))


def table() -> str:
    """Return the rows of the table."""
    return "".join(
        f"| {row.status} | `{row.code}` | {_again(row)} | {_cause(row)} | {row.advice} |\n"
        for row in rows()
    )


def _again(row: Row) -> str:
    """Say what `retryable` will be; nothing where a reply does not have it."""
    stated = error_detail(problems.Problem(row.status, row.message, code=row.code)).details
    return AGAIN[row.retryable] if stated else "–"


def _cause(row: Row) -> str:
    message = row.message.removesuffix(".")
    return row.cause or message[:1].lower() + message[1:]


def page() -> str:
    """Return the page as it should be."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


def main() -> None:
    PAGE.write_text(page(), "utf-8")
    sys.stdout.write(f"{PAGE}\n")


if __name__ == "__main__":
    main()
