"""How an exchange is written down, and how a recording is compared with the one that is kept."""

import csv
import difflib
import gzip
import hashlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.net.masking import Masks

RECORDINGS = Path(__file__).parent / "recordings"
RENEW = "NET_RENEW"  # Set in the environment: write what is played instead of comparing it.
WIDTH = 100
# No promise covers these, or another line of the recording says the same.
DROPPED = {"date", "server", "connection", "keep-alive", "content-length", "transfer-encoding"}
SAFE = ("x-content-type-options", "nosniff")  # Each reply must have it.
REPLY, SAME = "\n-> ", ", as for "  # Before a reply; between its status and who got it first.


class Recording:
    """What one scenario has said and heard, as it will be kept."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.masks = Masks()
        self._blocks: list[str] = []

    def note(self, title: str, *parts: str) -> None:
        """Write one exchange down: what was asked, then each part of what came."""
        lines = [part.rstrip("\n") for part in parts if part]
        self._blocks.append(self.masks.mask("\n".join([f"== {title}", *lines, ""])))

    def keep(self, title: str, text: str) -> None:
        """Write down what is the same everywhere, and so needs no mask."""
        self._blocks.append(f"== {title}\n{text}\n")

    @property
    def text(self) -> str:
        return "\n".join(shortened(self._blocks))

    def check(self) -> str:
        """Return how it differs from the one that is kept, or keep it if it is to be renewed."""
        if not os.environ.get(RENEW):
            return self.difference()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(self.text)
        return ""

    def difference(self) -> str:
        """Return how it differs from the one that is kept, as a diff; nothing if it does not."""
        kept = self.file.read_text().splitlines() if self.file.exists() else []
        name = str(self.file.relative_to(RECORDINGS.parents[2]))
        lines = difflib.unified_diff(kept, self.text.splitlines(), name, "played", lineterm="", n=5)
        return "\n".join(lines)


def shortened(blocks: Iterable[str]) -> Iterator[str]:
    """Yield exchanges; a reply that came before is its status and the title under which it came."""
    titles, first = set[str](), dict[str, str]()
    for block in blocks:
        title, (asked, _, reply) = block.partition("\n")[0], block.partition(REPLY)
        known = first.get(reply)
        if known is None and title not in titles:  # Else the title would name another reply.
            first[reply] = title
        titles.add(title)
        is_long = reply.count("\n") > 2
        status = reply.partition("\n")[0]
        same = f"{asked}{REPLY}{status}{SAME}{(known or '').removeprefix('== ')}\n"
        yield same if known and is_long else block


def exchanges_of(text: str) -> Iterator[str]:
    """Yield the exchanges of a recording, each with the whole of its reply."""
    first = dict[str, str]()
    for block in re.split(r"\n(?=== )", text):
        title, (asked, _, reply) = block.partition("\n")[0], block.partition(REPLY)
        named = reply.rstrip("\n").partition(SAME)[2]
        known = first.get(f"== {named}", reply)
        first.setdefault(title, known)
        yield f"{asked}{REPLY}{known}" if named else block


def told_headers(headers: Iterable[tuple[str, str]]) -> str:
    """Return the headers that somebody may rely on, in a fixed order, names in lower case."""
    pairs = sorted((name.lower(), value) for name, value in headers)
    # The methods of a path have no order.
    pairs = [(n, ", ".join(sorted(v.split(", "))) if n == "allow" else v) for n, v in pairs]
    return "\n".join(f"{name}: {value}" for name, value in pairs if name not in {*DROPPED, SAFE[0]})


def told_body(headers: Mapping[str, str], body: bytes, masks: Masks) -> str:
    """Return a body as text: JSON in order, other text as it is, an image by its digest."""
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    kind = headers.get("content-type", "").partition(";")[0]
    if kind.endswith("json") and not kind.endswith("ndjson"):
        return told_json(body.decode(), masks)
    if kind.endswith("ndjson"):
        return "\n".join(told_json(line, masks) for line in body.decode().splitlines())
    if kind == "text/csv":
        return told_csv(body.decode(), masks)
    if kind.startswith("text/") or kind.endswith("xml"):
        return body.decode()
    digest = hashlib.sha256(body).hexdigest()[:12]
    return f"({len(body)} bytes, sha256 {digest})" if body else ""


def told_json(text: str, masks: Masks) -> str:
    try:
        return pretty(masks.tree(json.loads(text)))
    except ValueError:
        return text


def told_csv(text: str, masks: Masks) -> str:
    """Return a table with its line ends shown once and its positions masked."""
    rows = [*csv.reader(io.StringIO(text))]
    if not rows:
        return ""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(masks.columns(rows))
    ends = "CRLF" if "\r\n" in text else "LF"
    return f"(lines end in {ends})\n{out.getvalue()}"


def pretty(value: Any, indent: str = "", lead: int = 0) -> str:
    """Write JSON, each list and object on one line where it fits."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(indent) + lead + len(flat) <= WIDTH:
        return flat
    inner = indent + " "
    if isinstance(value, dict):
        names = [(json.dumps(name, ensure_ascii=False) + ": ", value[name]) for name in value]
    else:
        names = [("", each) for each in value]
    lines = [f"{inner}{name}{pretty(each, inner, len(name))}" for name, each in names]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([first, ",\n".join(lines), indent + last])
