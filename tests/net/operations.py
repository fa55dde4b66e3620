"""The operations of the OpenAPI document, and what the recordings have of them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.net.recording import RECORDINGS

EXCHANGE = re.compile(r"== ([A-Z]+) (/[^?\n]*)(?:\?.*)? \([^()\n]+\)\n(?:.*\n)*?-> (\d{3})\n")


class Operation(NamedTuple):
    """One operation, and the statuses that the document has of it."""

    method: str
    path: str
    statuses: frozenset[int]
    has_body: bool

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(self.path)))


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    """Yield the operations of a document, those without parameters in their path first."""
    for path, item in sorted(document["paths"].items(), key=lambda each: ("{" in each[0], each[0])):
        for method, told in sorted(item.items()):
            if method != "parameters":
                statuses = frozenset(map(int, told["responses"]))
                yield Operation(method.upper(), path, statuses, "requestBody" in told)


def exchanges() -> Iterator[tuple[str, str, int]]:
    """Yield method, path and status of every exchange that is recorded."""
    for file in RECORDINGS.rglob("*.txt"):
        for block in re.split(r"^(?=== )", file.read_text(), flags=re.MULTILINE):
            if match := EXCHANGE.match(block):
                yield match[1], match[2], int(match[3])
