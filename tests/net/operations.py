"""The operations of the OpenAPI document, and what the recordings have of them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.net.recording import RECORDINGS, exchanges_of

EXCHANGE = re.compile(
    r"== (?P<method>[A-Z]+) (?P<path>/[^?\n]*)(?:\?.*)? \([^()\n]+\)\n(?:.*\n)*?"
    r"-> (?P<status>\d{3})\n(?P<headers>(?:[\w-]+: .*\n)*)(?P<body>(?:.*\n)*)"
)

WEBHOOK = re.compile(
    r"^== a webhook to .*\n(?:[\w-]+: .*\n)+((?:.*\n)*?)signatures: ", flags=re.MULTILINE
)


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


class Exchange(NamedTuple):
    """A request that is recorded, and its reply."""

    method: str
    path: str
    status: int
    headers: list[tuple[str, str]]
    body: str


def exchanges() -> Iterator[Exchange]:
    """Yield every exchange that is recorded."""
    for file in RECORDINGS.rglob("*.txt"):
        for block in exchanges_of(file.read_text()):
            if match := EXCHANGE.match(block):
                told = (each.partition(": ") for each in match["headers"].splitlines())
                headers = [(name, value) for name, _, value in told]
                status, body = int(match["status"]), match["body"].strip()
                yield Exchange(match["method"], match["path"], status, headers, body)


def webhooks() -> Iterator[str]:
    """Yield the body of every webhook that is recorded."""
    for file in RECORDINGS.rglob("*.txt"):
        yield from WEBHOOK.findall(file.read_text())
