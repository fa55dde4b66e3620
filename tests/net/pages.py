"""A page of the finance view as text: a line for each block and row, with where its links lead."""

import re
from html.parser import HTMLParser

LINES = {"dt", "h1", "h2", "li", "nav", "p", "title", "tr"}
CELLS = {"dd", "td", "th"}
TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")  # In UTC, as the footer says.


class Page(HTMLParser):
    """What a person reads on it, and the addresses and values behind that."""

    def __init__(self, body: str) -> None:
        super().__init__()
        self._parts: list[str] = []
        main = body.partition("<main")[2].partition(">")[2]
        self.feed(main.partition("</main>")[0])
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        self.text = TIME.sub(r"\1 UTC", "\n".join(line for line in lines if line))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in LINES:
            self._parts.append("\n")
        elif tag in CELLS:
            self._parts.append(" | ")
        elif tag == "input":
            self._parts.append(f" {given['name']}={given.get('value')}")
        elif tag == "option":
            self._parts.append(" *" if "selected" in given else " ")
        elif tag == "a":
            self._parts.append(f" [{given['href']}] ")

    def handle_endtag(self, tag: str) -> None:
        if tag in LINES - {"dt"}:
            self._parts.append("\n")

    def handle_data(self, data: str) -> None:
        self._parts.append(data.replace("\n", " "))
